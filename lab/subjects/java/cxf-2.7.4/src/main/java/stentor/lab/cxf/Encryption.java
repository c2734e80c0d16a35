package stentor.lab.cxf;

import javax.net.ssl.KeyManager;
import org.apache.cxf.configuration.jsse.TLSServerParameters;
import org.apache.cxf.transport.http_jetty.JettyHTTPServerEngineFactory;

/** TLS of the embedded Jetty, which is set for a port before anything is served there. */
final class Encryption {
    private Encryption() {}

    static void demand(int port, KeyManager[] keys) throws Exception {
        TLSServerParameters parameters = new TLSServerParameters();
        parameters.setKeyManagers(keys);
        new JettyHTTPServerEngineFactory().setTLSServerParametersForPort(port, parameters);
    }
}
