package stentor.lab.rivals;

import java.net.InetSocketAddress;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.xmlrpc.XmlRpcException;
import org.apache.xmlrpc.XmlRpcRequest;
import org.apache.xmlrpc.server.XmlRpcServerConfigImpl;
import org.apache.xmlrpc.webserver.WebServer;

/** Apache's XML-RPC on its own web server, connections kept. */
final class XmlRpcDevices {
    private XmlRpcDevices() {}

    static int serve(InetSocketAddress bind, KnownDevice known) throws Exception {
        WebServer server = new WebServer(bind.getPort(), bind.getAddress());
        XmlRpcServerConfigImpl config = (XmlRpcServerConfigImpl) server.getXmlRpcServer().getConfig();
        config.setKeepAliveEnabled(true);
        server.getXmlRpcServer().setHandlerMapping(method -> request -> answer(method, request, known));
        server.start();
        return server.getPort();
    }

    private static Object answer(String method, XmlRpcRequest request, KnownDevice known) throws XmlRpcException {
        if (!method.equals("devices.show") || request.getParameterCount() != 1) {
            throw new XmlRpcException(4, "there is no such method with one parameter");
        }
        known.demand((String) ((Map<?, ?>) request.getParameter(0)).get("device"));
        Map<String, Object> device = new LinkedHashMap<>();
        device.put("id", known.id);
        device.put("platform", known.platform);
        device.put("provider", known.provider);
        device.put("token_hint", known.tokenHint);
        device.put("tags", known.tags.toArray());
        device.put("registered_at", known.registeredAt);
        device.put("token_since", known.tokenSince);
        device.put("state", known.state);
        device.put("locale", known.locale);
        device.put("time_zone", known.timeZone);
        device.put("user", known.user);
        return device;
    }
}
