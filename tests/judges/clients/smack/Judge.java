import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeoutException;
import javax.net.ssl.SSLSocketFactory;
import org.jivesoftware.smack.ConnectionConfiguration.SecurityMode;
import org.jivesoftware.smack.packet.ExtensionElement;
import org.jivesoftware.smack.packet.Message;
import org.jivesoftware.smack.packet.StandardExtensionElement;
import org.jivesoftware.smack.roster.Roster;
import org.jivesoftware.smack.tcp.XMPPTCPConnection;
import org.jivesoftware.smack.tcp.XMPPTCPConnectionConfiguration;
import org.jivesoftware.smackx.ping.PingManager;
import org.jxmpp.jid.impl.JidCreate;

/** Drives the unmodified Smack through one scenario and prints one JSON line per step. */
public final class Judge {
    private static final String GCM = "google:mobile:data";
    private static final long PATIENCE_MS = 20_000;

    /** What has come on the connection: JSON texts, and errors of stanzas. */
    private final List<String> heard = new CopyOnWriteArrayList<>();
    private final XMPPTCPConnection connection;

    private Judge(int port, String name, String key) throws Exception {
        connection = new XMPPTCPConnection(XMPPTCPConnectionConfiguration.builder()
                .setXmppDomain(JidCreate.domainBareFrom("gcm.googleapis.com")).setHost("localhost").setPort(port)
                .setSecurityMode(SecurityMode.disabled).setSocketFactory(SSLSocketFactory.getDefault())
                .addEnabledSaslMechanism("PLAIN").setUsernameAndPassword(name, key).setSendPresence(false).build());
        connection.setReplyTimeout(PATIENCE_MS);
        connection.addSyncStanzaListener(stanza -> hear((Message) stanza), stanza -> stanza instanceof Message);
        connection.connect();
        connection.login();
    }

    private void hear(Message message) {
        synchronized (heard) {
            if (message.getType() == Message.Type.error) {
                heard.add("\"error " + message.getError().getCondition() + "\"");
            } else {
                ExtensionElement gcm = message.getExtension("gcm", GCM);
                heard.add(((StandardExtensionElement) gcm).getText());
            }
            heard.notifyAll();
        }
    }

    /** Waits for the first text that holds all of these. */
    private String await(String... parts) throws Exception {
        long until = System.currentTimeMillis() + PATIENCE_MS;
        synchronized (heard) {
            while (true) {
                for (String text : heard) {
                    if (List.of(parts).stream().allMatch(text::contains)) {
                        return text;
                    }
                }
                long left = until - System.currentTimeMillis();
                if (left <= 0) {
                    throw new TimeoutException(String.join(" ", parts) + " in " + heard);
                }
                heard.wait(left);
            }
        }
    }

    private void send(String json) throws Exception {
        Message message = new Message();
        message.addExtension(StandardExtensionElement.builder("gcm", GCM).setText(json).build());
        connection.sendStanza(message);
    }

    private String ask(String to, String id, String more) throws Exception {
        send("{\"to\":\"" + to + "\",\"message_id\":\"" + id + "\",\"data\":{\"k\":\"v <&> ' ü\"}" + more + "}");
        return await("\"message_id\":\"" + id + "\"");
    }

    private void acknowledge(String to, String id) throws Exception {
        send("{\"message_type\":\"ack\",\"to\":\"" + to + "\",\"message_id\":\"" + id + "\"}");
    }

    /** Takes the port, a sender id and its key; with the token of a device the connection server has real devices. */
    public static void main(String[] arguments) throws Exception {
        int port = Integer.parseInt(arguments[0]);
        String sender = arguments[1];
        if (arguments.length > 3) {
            withDevices(port, sender, arguments[2], arguments[3]);
            System.exit(0);
        }
        Judge[] judge = new Judge[1];
        attempt("login", () -> {
            judge[0] = new Judge(port, sender + "@gcm.googleapis.com", arguments[2]);
            return String.valueOf(judge[0].connection.isAuthenticated());
        });
        scenario(judge[0]);
        judge[0].connection.disconnect();
        Judge second = new Judge(port, sender, arguments[2]);
        attempt("resent", () -> second.await("\"message_id\":\"up-2\""));
        second.acknowledge("phone", "up-2");
        attempt("after", () -> second.ask("xmpp-after", "m-after", ""));
        second.connection.disconnect();
        attempt("wrong key", () -> String.valueOf(new Judge(port, sender, "wrong")));
        System.exit(0);
    }

    private static void withDevices(int port, String sender, String key, String token) throws Exception {
        attempt("wrong key", () -> String.valueOf(new Judge(port, sender, "wrong")));
        Judge[] judge = new Judge[1];
        attempt("login", () -> {
            judge[0] = new Judge(port, sender + "@gcm.googleapis.com", key);
            return String.valueOf(judge[0].connection.isAuthenticated());
        });
        Judge first = judge[0];
        attempt("ping", () -> String.valueOf(PingManager.getInstanceFor(first.connection).pingMyServer()));
        attempt("roster", () -> {
            Roster.getInstanceFor(first.connection).reloadAndWait();
            return String.valueOf(Roster.getInstanceFor(first.connection).isLoaded());
        });
        attempt("upstream", () -> first.await("\"message_id\":\"up-1\""));
        first.await("\"message_id\":\"up-2\"");
        first.acknowledge(token, "up-1");
        attempt("ack", () -> first.ask(token, "m-0", ""));
        attempt("nack", () -> first.ask("no token", "m-2", ""));
        attempt("bad ack", () -> {
            first.acknowledge("phone", "up-9");
            return first.await("\"message_id\":\"up-9\"");
        });
        attempt("stanza error", () -> {
            first.send("{\"to\":\"xmpp-one\"}");
            return first.await("\"error ");
        });
        first.connection.disconnect();
        Judge second = new Judge(port, sender, key);
        attempt("resent", () -> second.await("\"message_id\":\"up-2\""));
        second.acknowledge(token, "up-2");
        attempt("receipt", () -> {
            second.ask(token, "m-1", ",\"delivery_receipt_requested\":true");
            String receipt = second.await("\"message_id\":\"dr2:m-1\"");
            second.acknowledge("gcm.googleapis.com", "dr2:m-1");
            return receipt;
        });
        attempt("control", () -> {
            // The device has the server stopped when it gets this.
            second.ask(token, "m-last", "");
            return second.await("\"message_type\":\"control\"");
        });
        attempt("draining", () -> second.ask(token, "m-late", ""));
        second.connection.disconnect();
    }

    private static void scenario(Judge judge) {
        attempt("ping", () -> String.valueOf(PingManager.getInstanceFor(judge.connection).pingMyServer()));
        attempt("roster", () -> {
            Roster.getInstanceFor(judge.connection).reloadAndWait();
            return String.valueOf(Roster.getInstanceFor(judge.connection).isLoaded());
        });
        attempt("upstream", () -> judge.await("\"message_id\":\"up-1\""));
        attempt("ack", () -> {
            judge.acknowledge("phone", "up-1");
            return judge.ask("xmpp-one", "m-1", "");
        });
        attempt("nack", () -> judge.ask("gone", "m-2", ""));
        attempt("bad ack", () -> {
            judge.acknowledge("phone", "up-9");
            return judge.await("\"message_id\":\"up-9\"");
        });
        attempt("stanza error", () -> {
            judge.send("{\"to\":\"xmpp-one\"}");
            return judge.await("\"error ");
        });
        attempt("receipt", () -> {
            judge.ask("xmpp-two", "m-3", ",\"delivery_receipt_requested\":true");
            String receipt = judge.await("\"message_id\":\"dr2:m-3\"");
            judge.acknowledge("gcm.googleapis.com", "dr2:m-3");
            return receipt;
        });
        attempt("control", () -> {
            judge.ask("xmpp-three", "m-4", "");
            return judge.await("\"message_type\":\"control\"");
        });
        attempt("draining", () -> judge.ask("xmpp-four", "m-5", ""));
    }

    private static void attempt(String step, Callable<String> call) {
        try {
            System.out.println("{\"step\":\"" + step + "\",\"ok\":true,\"value\":" + call.call() + "}");
        } catch (Exception error) { // the test decides which error is right
            String detail = String.valueOf(error.getMessage()).replaceAll("[\"\\\\\\p{Cntrl}]", "'");
            String name = error.getClass().getSimpleName();
            System.out.println("{\"step\":\"" + step + "\",\"ok\":false,\"error\":\"" + name + "\",\"detail\":\"" + detail + "\"}");
        }
    }
}
