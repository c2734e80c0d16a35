package stentor.lab.cxf;

import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.util.Collections;
import java.util.Map;
import stentor.lab.Lsp;
import stentor.lab.Samples;
import stentor.lab.Tls;

/** CXF on its embedded Jetty. Usage: Cxf rest|soap|json; json is a server only. */
public final class Cxf implements Lsp.Subject {
    private final String face;

    private Cxf(String face) {
        this.face = face;
    }

    public static void main(String[] words) throws Exception {
        Lsp.speak(new Cxf(words[0]));
    }

    @Override
    public Map<String, String> versions() {
        return Collections.singletonMap("cxf", org.apache.cxf.version.Version.getCurrentVersion());
    }

    @Override
    public int serve(String op, InetSocketAddress bind, Map<String, String> factors, Samples samples) throws Exception {
        int port = bind.getPort();
        if (port == 0) { // An address of CXF names its port.
            try (ServerSocket free = new ServerSocket(0)) {
                port = free.getLocalPort();
            }
        }
        if (Tls.isOn(factors)) {
            Encryption.demand(port, Tls.keys(factors));
        }
        String address = (Tls.isOn(factors) ? "https://" : "http://") + bind.getHostString() + ":" + port + "/";
        switch (face) {
            case "rest": Rest.serve(address, factors, samples); break;
            case "json": JsonRest.serve(address, factors, samples); break;
            default: Soap.serve(address, op, factors, samples);
        }
        return port;
    }

    @Override
    public Lsp.Client call(String op, InetSocketAddress target, Map<String, String> factors) {
        String address = "http://" + target.getHostString() + ":" + target.getPort() + "/";
        return face.equals("rest") ? Rest.call(op, address, factors) : Soap.call(op, address, factors);
    }
}
