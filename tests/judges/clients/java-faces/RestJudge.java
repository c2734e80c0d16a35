import jakarta.ws.rs.ClientErrorException;
import java.util.List;
import org.apache.cxf.jaxrs.client.JAXRSClientFactory;
import org.apache.cxf.jaxrs.client.WebClient;
import stentor.*;
import stentor.v1.*;

/** CXF, with the interfaces that its wadl2java made of the description, uses the REST face in XML: RestJudge <url> <key> */
public class RestJudge {
    public static void main(String[] arguments) {
        var devices = proxy(DevicesResource.class, arguments);
        var device = proxy(DevicesDeviceResource.class, arguments);
        var asked = new RegisterDevice();
        asked.setPlatform("android");
        asked.setProvider("null");
        asked.setToken("token-of-a-java-phone");
        asked.getTopics().add("news");
        var registered = devices.devices_register(asked);
        check(registered.isCreated(), "registered");
        var shown = device.devices_show(registered.getId());
        check(shown.getId().equals(registered.getId()) && shown.getPlatform().equals("android"), "shown");
        var change = new ChangeDevice();
        // A field that may be cleared is more than its value.
        change.setLocale(new ObjectFactory().createChangeDeviceLocale("de-CH"));
        check(device.devices_change(registered.getId(), change).getLocale().equals("de-CH"), "changed");
        var topics = proxy(DevicesDeviceTopicsResource.class, arguments).devices_topics(registered.getId());
        check(topics.getTopics().equals(List.of("news")), "topics");
        messages(arguments);
        asked.setPlatform("vms");
        try {
            devices.devices_register(asked);
            check(false, "refused");
        } catch (ClientErrorException refused) {
            check(refused.getResponse().getStatus() == 422, refused.toString());
        }
        device.devices_remove(registered.getId());
        System.out.println("CXF is content");
        System.exit(0);
    }

    static void messages(String[] arguments) {
        var target = new Target();
        target.setTopic("news");
        var entry = new MapOfString.Entry();
        entry.setKey("k");
        entry.setValue("v & <w>");
        var message = new SendMessage();
        message.setTarget(target);
        message.setData(new MapOfString());
        message.getData().getEntry().add(entry);
        message.setIdempotencyKey("java");
        var messages = proxy(MessagesResource.class, arguments);
        var sent = messages.messages_send(message);
        var again = messages.messages_send(message);
        check(!sent.isReplayed() && again.isReplayed(), "replayed");
        check(sent.getAccepted().getId().equals(again.getAccepted().getId()), "the same message");
        var ledger = proxy(MessagesMessageLedgerResource.class, arguments).messages_ledger(sent.getAccepted().getId());
        check(ledger.isBalanced(), "balanced");
    }

    /** What a class cannot say: the key, and which of the formats it is that its types are made for. */
    static <T> T proxy(Class<T> resource, String[] arguments) {
        var proxy = JAXRSClientFactory.create(arguments[0], resource);
        WebClient.client(proxy).header("Authorization", "Bearer " + arguments[1])
            .type("application/xml").accept("application/xml");
        return proxy;
    }

    static void check(boolean holds, String what) {
        if (!holds) throw new AssertionError(what);
    }
}
