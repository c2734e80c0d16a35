package stentor.lab.cxf;

import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.util.Collections;
import java.util.Map;
import stentor.lab.Lsp;
import stentor.lab.Samples;

/** CXF on its embedded Jetty. Usage: Cxf rest|soap */
public final class Cxf implements Lsp.Subject {
    private final boolean rest;

    private Cxf(boolean rest) {
        this.rest = rest;
    }

    public static void main(String[] words) throws Exception {
        Lsp.speak(new Cxf(words[0].equals("rest")));
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
        String address = "http://" + bind.getHostString() + ":" + port + "/";
        if (rest) {
            Rest.serve(address, samples);
        } else {
            Soap.serve(address, op, samples);
        }
        return port;
    }

    @Override
    public Lsp.Client call(String op, InetSocketAddress target, Map<String, String> factors) {
        String address = "http://" + target.getHostString() + ":" + target.getPort() + "/";
        return rest ? Rest.call(op, address, factors) : Soap.call(op, address);
    }
}
