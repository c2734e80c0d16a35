package stentor.lab.smack;

import java.net.InetSocketAddress;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import javax.net.SocketFactory;
import org.jivesoftware.smack.ConnectionConfiguration.SecurityMode;
import org.jivesoftware.smack.SmackConfiguration;
import org.jivesoftware.smack.packet.Message;
import org.jivesoftware.smack.packet.StandardExtensionElement;
import org.jivesoftware.smack.tcp.XMPPTCPConnection;
import org.jivesoftware.smack.tcp.XMPPTCPConnectionConfiguration;
import org.jxmpp.jid.impl.JidCreate;
import stentor.lab.Json;
import stentor.lab.Lsp;
import stentor.lab.Samples;
import stentor.lab.Tls;

/** An app server of GCM or FCM: it acknowledges each message of the device and sends it back. Usage: AppServer DOMAIN */
public final class AppServer implements Lsp.Subject {
    private static final String NAME = "gcm";
    private static final String NAMESPACE = "google:mobile:data";
    private static final int REPLY_MS = 20_000;
    private static final int TTL_SECONDS = 600;

    private final String domain;

    private AppServer(String domain) {
        this.domain = domain;
    }

    public static void main(String[] words) throws Exception {
        Lsp.speak(new AppServer(words[0]));
    }

    @Override
    public Map<String, String> versions() {
        return Collections.singletonMap("smack", SmackConfiguration.getVersion());
    }

    /** Logs in at the gateway, whose port and keys are facts of the cell. */
    @Override
    public int serve(String op, InetSocketAddress gateway, Map<String, String> factors, Samples samples) throws Exception {
        Tls tls = Tls.client(factors);
        XMPPTCPConnection connection = new XMPPTCPConnection(XMPPTCPConnectionConfiguration.builder()
            .setXmppDomain(JidCreate.domainBareFrom(domain))
            .setHost(gateway.getHostString()).setPort(Integer.parseInt(factors.get("gateway_ccs_port")))
            .setSecurityMode(SecurityMode.disabled)
            .setSocketFactory(tls == null ? SocketFactory.getDefault() : tls.sockets())
            .addEnabledSaslMechanism("PLAIN")
            .setUsernameAndPassword(factors.get("gateway_app") + "@" + domain, factors.get("gateway_send_key"))
            .setSendPresence(false).build());
        connection.setReplyTimeout(REPLY_MS);
        connection.addSyncStanzaListener(
            stanza -> hear(connection, (Message) stanza, samples), stanza -> stanza instanceof Message);
        connection.connect();
        connection.login();
        return 0;
    }

    @Override
    public Lsp.Client call(String op, InetSocketAddress target, Map<String, String> factors) {
        throw new UnsupportedOperationException("only an app server");
    }

    private static void hear(XMPPTCPConnection connection, Message message, Samples samples) {
        StandardExtensionElement gcm = message.getExtension(NAME, NAMESPACE);
        if (gcm == null) {
            System.err.println(message.toXML());
            return;
        }
        Samples.Sample sample = samples.begin();
        String text = gcm.getText();
        sample.bytes(text.length());
        Map<String, Object> heard = Json.read(text);
        sample.deserialized();
        if (heard.containsKey("message_type")) {
            samples.drop(); // An answer of the gateway to one of ours.
            return;
        }
        try {
            answer(connection, heard, sample);
        } catch (Exception error) {
            error.printStackTrace();
            sample.done(false);
        }
    }

    private static void answer(XMPPTCPConnection connection, Map<String, Object> heard, Samples.Sample sample)
            throws Exception {
        String id = heard.get("message_id").toString();
        sample.number(Long.parseLong(id));
        Map<String, Object> ack = new LinkedHashMap<>();
        ack.put("message_type", "ack");
        ack.put("to", heard.get("from"));
        ack.put("message_id", id);
        Map<String, Object> back = new LinkedHashMap<>();
        back.put("to", heard.get("from"));
        back.put("message_id", "d-" + id);
        back.put("data", heard.get("data"));
        back.put("time_to_live", TTL_SECONDS);
        sample.worked();
        Message[] both = {stanza(ack), stanza(back)};
        sample.done(true);
        for (Message one : both) {
            connection.sendStanza(one);
        }
    }

    private static Message stanza(Map<String, Object> json) {
        Message message = new Message();
        message.addExtension(StandardExtensionElement.builder(NAME, NAMESPACE).setText(Json.write(json)).build());
        return message;
    }
}
