package stentor.lab.rivals.soap;

import jakarta.jws.WebService;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import org.apache.cxf.jaxws.JaxWsServerFactoryBean;
import stentor.lab.rivals.KnownDevice;

/** CXF on its embedded Jetty: SOAP 1.1, JAX-WS and JAXB. */
@WebService(endpointInterface = "stentor.lab.rivals.soap.Devices", targetNamespace = Devices.NAMESPACE, serviceName = "Devices")
public final class SoapDevices implements Devices {
    private final KnownDevice known;

    private SoapDevices(KnownDevice known) {
        this.known = known;
    }

    public static int serve(InetSocketAddress bind, KnownDevice known) throws Exception {
        int port = bind.getPort();
        if (port == 0) { // An address of CXF names its port.
            try (ServerSocket free = new ServerSocket(0)) {
                port = free.getLocalPort();
            }
        }
        JaxWsServerFactoryBean factory = new JaxWsServerFactoryBean();
        factory.setServiceBean(new SoapDevices(known));
        factory.setAddress("http://" + bind.getHostString() + ":" + port + "/soap");
        factory.create();
        return port;
    }

    @Override
    public Shown show(Asked asked) {
        known.demand(asked.device);
        Device device = new Device();
        device.id = known.id;
        device.platform = known.platform;
        device.provider = known.provider;
        device.token_hint = known.tokenHint;
        device.tags = known.tags;
        device.registered_at = known.registeredAt;
        device.token_since = known.tokenSince;
        device.state = known.state;
        device.locale = known.locale;
        device.time_zone = known.timeZone;
        device.user = known.user;
        Shown shown = new Shown();
        shown.device = device;
        return shown;
    }
}
