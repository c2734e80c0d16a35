import java.net.URI;
import java.util.Map;
import org.apache.xmlrpc.XmlRpcException;
import org.apache.xmlrpc.client.XmlRpcClient;
import org.apache.xmlrpc.client.XmlRpcClientConfigImpl;

/** Apache XML-RPC uses the XML-RPC face: RpcJudge <url> <key> */
public class RpcJudge {
    static final XmlRpcClient CLIENT = new XmlRpcClient();

    public static void main(String[] arguments) throws Exception {
        var config = new XmlRpcClientConfigImpl();
        config.setServerURL(URI.create(arguments[0] + "/rpc").toURL());
        config.setBasicUserName("stentor");
        config.setBasicPassword(arguments[1]);
        CLIENT.setConfig(config);
        var methods = (Object[]) CLIENT.execute("system.listMethods", new Object[] {});
        check(java.util.List.of(methods).contains("messages.send"), "listed");
        var device = call("devices.register", Map.of("platform", "android", "provider", "null",
            "token", "token-of-an-apache-phone", "topics", new Object[] {"news"}));
        check(device.get("created").equals(true), "registered");
        var message = Map.of("target", Map.of("topic", "news"), "data", Map.of("k", "v & <w>"),
            "ttl_seconds", 60, "idempotency_key", "apache");
        var sent = call("messages.send", message);
        var again = call("messages.send", message);
        check(sent.get("replayed").equals(false) && again.get("replayed").equals(true), "replayed");
        var id = ((Map<?, ?>) sent.get("accepted")).get("id");
        check(id.equals(((Map<?, ?>) again.get("accepted")).get("id")), "the same message");
        check(call("messages.ledger", Map.of("message", id)).get("balanced").equals(true), "balanced");
        try {
            call("devices.register", Map.of("platform", "vms", "token", "t"));
            check(false, "refused");
        } catch (XmlRpcException refused) {
            check(refused.code == 2 && refused.getMessage().startsWith("invalid_field at platform"), refused.getMessage());
        }
        System.out.println("Apache XML-RPC is content");
    }

    static Map<?, ?> call(String method, Map<String, ?> record) throws XmlRpcException {
        return (Map<?, ?>) CLIENT.execute(method, new Object[] {record});
    }

    static void check(boolean holds, String what) {
        if (!holds) throw new AssertionError(what);
    }
}
