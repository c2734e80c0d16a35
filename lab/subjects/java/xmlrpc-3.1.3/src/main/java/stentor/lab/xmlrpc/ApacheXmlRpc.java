package stentor.lab.xmlrpc;

import java.io.InputStream;
import java.net.InetSocketAddress;
import java.net.URL;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.xmlrpc.XmlRpcException;
import org.apache.xmlrpc.XmlRpcRequest;
import org.apache.xmlrpc.client.XmlRpcClient;
import org.apache.xmlrpc.client.XmlRpcClientConfigImpl;
import org.apache.xmlrpc.client.XmlRpcSunHttpTransport;
import org.apache.xmlrpc.client.XmlRpcTransport;
import org.apache.xmlrpc.client.XmlRpcTransportFactoryImpl;
import org.apache.xmlrpc.server.XmlRpcServerConfigImpl;
import org.apache.xmlrpc.webserver.TimedWebServer;
import org.xml.sax.SAXException;
import stentor.lab.Content;
import stentor.lab.Lsp;
import stentor.lab.Samples;
import stentor.lab.Times;

/** Apache XML-RPC: its client over HttpURLConnection, its own web server. */
public final class ApacheXmlRpc implements Lsp.Subject {
    public static void main(String[] words) throws Exception {
        Lsp.speak(new ApacheXmlRpc());
    }

    @Override
    public Map<String, String> versions() {
        return Map.of("xmlrpc", "3.1.3");
    }

    @Override
    public int serve(String op, InetSocketAddress bind, Map<String, String> factors, Samples samples) throws Exception {
        TimedWebServer server = new TimedWebServer(bind.getPort(), bind.getAddress(), samples);
        XmlRpcServerConfigImpl config = (XmlRpcServerConfigImpl) server.getXmlRpcServer().getConfig();
        config.setKeepAliveEnabled(true);
        server.getXmlRpcServer().setHandlerMapping(method -> request -> answer(op, method, request, samples));
        server.start();
        return server.getPort();
    }

    private static Object answer(String op, String method, XmlRpcRequest request, Samples samples)
            throws XmlRpcException {
        if (!method.equals("lab." + op) || request.getParameterCount() != 1) {
            throw new XmlRpcException(4, "there is no such method with one parameter");
        }
        return values(samples.work(op, content((Map<?, ?>) request.getParameter(0))));
    }

    @Override
    public Lsp.Client call(String op, InetSocketAddress target, Map<String, String> factors) throws Exception {
        XmlRpcClientConfigImpl config = new XmlRpcClientConfigImpl();
        config.setServerURL(new URL("http", target.getHostString(), target.getPort(), "/" + op));
        XmlRpcClient client = new XmlRpcClient();
        client.setConfig(config);
        Times[] current = {null};
        client.setTransportFactory(new XmlRpcTransportFactoryImpl(client) {
            @Override
            public XmlRpcTransport getTransport() {
                return new Timed(getClient(), current[0]);
            }
        });
        return (request, times) -> {
            current[0] = times;
            Object answer = client.execute("lab." + op, new Object[] {values(request)});
            Content content = content((Map<?, ?>) answer);
            times.deserialized();
            return content;
        };
    }

    /** The library's own transport with the times of its phases: it writes the request to memory, then sends it. */
    private static final class Timed extends XmlRpcSunHttpTransport {
        private final Times times;

        Timed(XmlRpcClient client, Times times) {
            super(client);
            this.times = times;
        }

        @Override
        protected ReqWriter newReqWriter(XmlRpcRequest request) throws XmlRpcException, java.io.IOException, SAXException {
            ReqWriter writer = super.newReqWriter(request);
            times.serialized();
            return writer;
        }

        @Override
        protected InputStream getInputStream() throws XmlRpcException {
            return times.watch(super.getInputStream());
        }
    }

    private static Map<String, Object> values(Content content) {
        Map<String, Object> values = new LinkedHashMap<>();
        Object[] entries;
        if (content.payload != null) {
            values.put("payload", content.payload);
            return values;
        } else if (content.numbers != null) {
            entries = content.numbers.stream().map(Long::intValue).toArray();
        } else if (content.texts != null) {
            entries = content.texts.toArray();
        } else if (content.objects != null) {
            entries = content.objects.stream().map(ApacheXmlRpc::item).toArray();
        } else {
            entries = content.points.stream().map(ApacheXmlRpc::point).toArray();
        }
        values.put(content.kind(), entries);
        return values;
    }

    private static Map<String, Object> item(Content.Item item) {
        Map<String, Object> values = new LinkedHashMap<>();
        values.put("id", (int) item.id);
        values.put("name", item.name);
        values.put("price", item.price);
        return values;
    }

    private static Map<String, Object> point(String[] point) {
        Map<String, Object> values = new LinkedHashMap<>();
        for (int at = 0; at < point.length; at++) {
            values.put(Content.FIELDS[at], point[at]);
        }
        return values;
    }

    private static Content content(Map<?, ?> values) {
        String kind = (String) values.keySet().iterator().next();
        if (kind.equals("payload")) {
            return Content.ofPayload((String) values.get(kind));
        }
        Content content = Content.of(kind);
        for (Object entry : (Object[]) values.get(kind)) {
            if (content.numbers != null) {
                content.numbers.add(((Number) entry).longValue());
            } else if (content.texts != null) {
                content.texts.add((String) entry);
            } else if (content.objects != null) {
                Map<?, ?> item = (Map<?, ?>) entry;
                content.objects.add(new Content.Item(((Number) item.get("id")).longValue(),
                    (String) item.get("name"), ((Number) item.get("price")).doubleValue()));
            } else {
                List<String> fields = new ArrayList<>();
                for (String name : Content.FIELDS) {
                    fields.add((String) ((Map<?, ?>) entry).get(name));
                }
                content.points.add(fields.toArray(new String[0]));
            }
        }
        return content;
    }
}
