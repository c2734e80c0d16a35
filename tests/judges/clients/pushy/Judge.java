import com.eatthepath.pushy.apns.ApnsClient;
import com.eatthepath.pushy.apns.ApnsClientBuilder;
import com.eatthepath.pushy.apns.DeliveryPriority;
import com.eatthepath.pushy.apns.PushNotificationResponse;
import com.eatthepath.pushy.apns.PushType;
import com.eatthepath.pushy.apns.auth.ApnsSigningKey;
import com.eatthepath.pushy.apns.util.SimpleApnsPushNotification;
import java.io.File;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;

/** Drives the unmodified pushy through one scenario and prints one JSON line per step. */
public final class Judge {
    private static final String TOPIC = "org.example.app";
    private static final int ROUNDS_MAX = 10;
    private static final String PAYLOAD = "{\"aps\":{\"alert\":\"Hello from a judge\"}}";

    /** Takes the CA file, the signing key, how many pushes to send, and pairs of step and token. */
    public static void main(String[] arguments) {
        int status = 0;
        try {
            judge(arguments);
        } catch (Exception error) {
            error.printStackTrace();
            status = 1;
        }
        System.exit(status); // the client's own threads would keep a failed run alive
    }

    private static void judge(String[] arguments) throws Exception {
        ApnsClient client = new ApnsClientBuilder()
                .setApnsServer(ApnsClientBuilder.PRODUCTION_APNS_HOST)
                .setTrustedServerCertificateChain(new File(arguments[0]))
                .setSigningKey(ApnsSigningKey.loadFromPkcs8File(new File(arguments[1]), "TEAMID1234", "KEYID12345"))
                .build();
        for (int index = 3; index + 1 < arguments.length; index += 2) {
            report(arguments[index], send(client, arguments[index + 1]).get(30, TimeUnit.SECONDS));
        }
        sendMany(client, Integer.parseInt(arguments[2]));
        client.close().get(30, TimeUnit.SECONDS);
    }

    private static CompletableFuture<PushNotificationResponse<SimpleApnsPushNotification>> send(
            ApnsClient client, String token) {
        Instant expiration = Instant.now().plusSeconds(60);
        return client.sendNotification(new SimpleApnsPushNotification(
                token, TOPIC, PAYLOAD, expiration, DeliveryPriority.IMMEDIATE, PushType.ALERT, "news"));
    }

    private static void report(String step, PushNotificationResponse<?> answer) {
        String reason = answer.getRejectionReason().map(text -> "\"" + text + "\"").orElse("null");
        String timestamp = answer.getTokenInvalidationTimestamp().map(at -> "" + at.toEpochMilli()).orElse("null");
        System.out.printf("{\"step\":\"%s\",\"ok\":%b,\"status\":%d,\"reason\":%s,\"timestamp\":%s}%n",
                step, answer.isAccepted(), answer.getStatusCode(), reason, timestamp);
    }

    /** Sends to many tokens at once; what a closed connection left unanswered is sent again. */
    private static void sendMany(ApnsClient client, int count) throws Exception {
        List<String> waiting = new ArrayList<>();
        for (int number = 0; number < count; number++) {
            waiting.add(String.format("%064x", 0xabc0000 + number));
        }
        int accepted = 0;
        int resent = -count;
        for (int round = 0; round < ROUNDS_MAX && !waiting.isEmpty(); round++) {
            resent += waiting.size();
            List<CompletableFuture<PushNotificationResponse<SimpleApnsPushNotification>>> answers = new ArrayList<>();
            for (String token : waiting) {
                answers.add(send(client, token));
            }
            List<String> unanswered = new ArrayList<>();
            for (int index = 0; index < answers.size(); index++) {
                try {
                    accepted += answers.get(index).get(60, TimeUnit.SECONDS).isAccepted() ? 1 : 0;
                } catch (ExecutionException error) {
                    unanswered.add(waiting.get(index));
                }
            }
            waiting = unanswered;
        }
        System.out.printf("{\"step\":\"many\",\"ok\":%b,\"value\":%d}%n", accepted == count, accepted);
        System.out.printf("{\"step\":\"resent\",\"ok\":true,\"value\":%d}%n", resent);
    }
}
