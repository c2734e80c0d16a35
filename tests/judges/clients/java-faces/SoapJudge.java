import jakarta.xml.ws.BindingProvider;
import java.lang.reflect.InvocationTargetException;
import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import stentor.*;

/** CXF, with the classes that its wsdl2java made of the description, uses the SOAP face: SoapJudge <url> <key> */
public class SoapJudge {
    public static void main(String[] arguments) throws Exception {
        var address = URI.create(arguments[0] + "/soap?wsdl").toURL();
        var service = new StentorService(address);
        stories(service.getSoap11(), arguments[1], 1);
        stories(service.getSoap12(), arguments[1], 2);
        System.out.println("CXF is content");
        System.exit(0);
    }

    static void stories(Stentor server, String key, int number) throws Exception {
        var context = ((BindingProvider) server).getRequestContext();
        context.put(BindingProvider.USERNAME_PROPERTY, "stentor");
        context.put(BindingProvider.PASSWORD_PROPERTY, key);
        // A fault of SOAP 1.2 that is the sender's has status 400, which CXF takes for one only where it is told so.
        context.put("org.apache.cxf.transport.process_fault_on_http_400", true);
        var device = (Registered) call(server, "registerDevice", Map.of(
            "platform", "android", "token", "token-of-a-java-phone-" + number, "provider", "null",
            "topics", List.of("news")));
        check(device.isCreated(), "registered");
        check(server.listDeviceTopics(device.getId(), null).getTopics().equals(List.of("news")), "topics");
        var target = new Target();
        target.setTopic("news");
        var sent = send(server, target, 60L, "java-" + number);
        var again = send(server, target, 60L, "java-" + number);
        check(!sent.isReplayed() && again.isReplayed(), "replayed");
        check(sent.getAccepted().getId().equals(again.getAccepted().getId()), "the same message");
        check(server.showMessageLedger(sent.getAccepted().getId(), null).isBalanced(), "balanced");
        try {
            call(server, "registerDevice", Map.of("platform", "vms", "token", "t"));
            check(false, "refused");
        } catch (OperationRefused refused) {
            check(refused.getFaultInfo().getCode().equals("invalid_field"), refused.getMessage());
            check(refused.getFaultInfo().getField().equals("platform"), refused.getMessage());
        }
        server.removeDevice(device.getId(), null);
    }

    static Sent send(Stentor server, Target target, Long ttl, String key) throws Exception {
        var entry = new MapOfString.Entry();
        entry.setKey("k");
        entry.setValue("v & <w>");
        var data = new MapOfString();
        data.getEntry().add(entry);
        return (Sent) call(server, "sendMessage", Map.of("target", target, "data", data, "ttl_seconds", ttl, "idempotency_key", key));
    }

    /** Calls an operation by the names of its parameters: which ones there are, and in which order, is the description's. */
    static Object call(Stentor server, String operation, Map<String, ?> named) throws Exception {
        for (var method : Stentor.class.getMethods()) {
            if (!method.getName().equals(operation)) continue;
            var values = new ArrayList<Object>();
            for (var parameter : method.getParameters()) {
                values.add(named.get(parameter.getAnnotation(jakarta.jws.WebParam.class).name()));
            }
            try {
                return method.invoke(server, values.toArray());
            } catch (InvocationTargetException thrown) {
                if (thrown.getCause() instanceof OperationRefused refused) throw refused;
                throw thrown;
            }
        }
        throw new IllegalStateException("no " + operation);
    }

    static void check(boolean holds, String what) {
        if (!holds) throw new AssertionError(what);
    }
}
