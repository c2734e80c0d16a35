package stentor.lab.rivals;

import java.net.InetSocketAddress;
import java.util.Collections;
import java.util.Map;
import org.apache.xmlrpc.webserver.WebServer;
import stentor.lab.Lsp;
import stentor.lab.Samples;

/** What the faces of the server are measured beside. Usage: Rival cxf|xmlrpc|grpc; a server only. */
public final class Rival implements Lsp.Subject {
    private final String software;

    private Rival(String software) {
        this.software = software;
    }

    public static void main(String[] words) throws Exception {
        Lsp.speak(new Rival(words[0]));
    }

    @Override
    public Map<String, String> versions() {
        switch (software) {
            case "cxf": return Collections.singletonMap("cxf", org.apache.cxf.version.Version.getCurrentVersion());
            case "xmlrpc": return Collections.singletonMap("apache-xmlrpc", WebServer.class.getPackage().getImplementationVersion());
            default: return Collections.singletonMap("grpc-java", GrpcDevices.version());
        }
    }

    @Override
    public int serve(String op, InetSocketAddress bind, Map<String, String> factors, Samples samples) throws Exception {
        KnownDevice known = new KnownDevice(factors);
        switch (software) {
            case "cxf": return stentor.lab.rivals.soap.SoapDevices.serve(bind, known);
            case "xmlrpc": return XmlRpcDevices.serve(bind, known);
            default: return GrpcDevices.serve(bind, known);
        }
    }

    @Override
    public Lsp.Client call(String op, InetSocketAddress target, Map<String, String> factors) {
        throw new UnsupportedOperationException("it only serves");
    }
}
