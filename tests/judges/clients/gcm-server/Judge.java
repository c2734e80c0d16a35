import com.google.android.gcm.server.InvalidRequestException;
import com.google.android.gcm.server.Message;
import com.google.android.gcm.server.MulticastResult;
import com.google.android.gcm.server.Notification;
import com.google.android.gcm.server.Result;
import com.google.android.gcm.server.Sender;
import java.io.IOException;
import java.net.HttpURLConnection;
import java.net.URI;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;

/** Drives the unmodified gcm-server 1.0.0 through one scenario and prints one JSON line per step. */
public final class Judge {
    private static String server;

    /** The library lets whoever extends it open the connection: the path is its own, the address is ours. */
    private static final class Redirected extends Sender {
        Redirected(String key) {
            super(key);
        }

        @Override
        protected HttpURLConnection getConnection(String url) throws IOException {
            return super.getConnection(server + URI.create(url).getPath());
        }
    }

    /** Takes the address of the server, a key of it, and a token that its device has replaced. */
    public static void main(String[] arguments) {
        server = arguments[0];
        Sender sender = new Redirected(arguments[1]);
        Message message = new Message.Builder().addData("k", "v & w").collapseKey("c").timeToLive(60)
                .notification(new Notification.Builder("icon").title("Hello").body("from gcm-server").build()).build();
        attempt("single", () -> text(sender.sendNoRetry(message, "gcm-one")));
        attempt("retried", () -> text(sender.send(message, "gcm-two", 2)));
        attempt("many", () -> counted(sender.sendNoRetry(message, List.of("gcm-1", "gcm-2", "gone"))));
        attempt("topic", () -> text(sender.sendNoRetry(message, "/topics/news")));
        attempt("dead", () -> text(sender.sendNoRetry(message, "gone")));
        attempt("bad ttl", () -> text(sender.sendNoRetry(new Message.Builder().timeToLive(-1).build(), "gcm-one")));
        attempt("canonical", () -> quoted(sender.sendNoRetry(message, arguments[2]).getCanonicalRegistrationId()));
        Sender stranger = new Redirected("sk_wrong");
        attempt("wrong key", () -> text(stranger.sendNoRetry(message, "gcm-one")));
    }

    private static String text(Result result) {
        return quoted(result.getMessageId() == null ? result.getErrorCodeName() : "sent");
    }

    private static String counted(MulticastResult result) {
        String errors = result.getResults().stream().map(Judge::text).collect(Collectors.joining(","));
        return "{\"success\":" + result.getSuccess() + ",\"failure\":" + result.getFailure() + ",\"results\":[" + errors + "]}";
    }

    private static void attempt(String step, Callable<String> call) {
        try {
            System.out.println("{\"step\":\"" + step + "\",\"ok\":true,\"value\":" + call.call() + "}");
        } catch (InvalidRequestException error) {
            failed(step, "HTTP " + error.getHttpStatusCode());
        } catch (Exception error) { // the test decides which error is right
            failed(step, error.getClass().getSimpleName());
        }
    }

    private static void failed(String step, String error) {
        System.out.println("{\"step\":\"" + step + "\",\"ok\":false,\"error\":" + quoted(error) + "}");
    }

    private static String quoted(String text) {
        return text == null ? "null" : "\"" + text.replace("\\", "\\\\").replace("\"", "\\\"") + "\"";
    }
}
