import com.google.auth.oauth2.GoogleCredentials;
import com.google.firebase.FirebaseApp;
import com.google.firebase.FirebaseOptions;
import com.google.firebase.messaging.AndroidConfig;
import com.google.firebase.messaging.AndroidNotification;
import com.google.firebase.messaging.ApnsConfig;
import com.google.firebase.messaging.Aps;
import com.google.firebase.messaging.BatchResponse;
import com.google.firebase.messaging.FcmOptions;
import com.google.firebase.messaging.FirebaseMessaging;
import com.google.firebase.messaging.FirebaseMessagingException;
import com.google.firebase.messaging.Message;
import com.google.firebase.messaging.MulticastMessage;
import com.google.firebase.messaging.Notification;
import com.google.firebase.messaging.SendResponse;
import com.google.firebase.messaging.TopicManagementResponse;
import com.google.firebase.messaging.WebpushConfig;
import com.google.gson.Gson;
import java.io.FileInputStream;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;

/** Drives the unmodified firebase-admin for Java through one scenario and prints one JSON line per step. */
public final class Judge {
    private static final String TOPIC = "news";

    /** Takes the file of the service account; after its first step it ends if the last argument is "once". */
    public static void main(String[] arguments) {
        int status = 0;
        try (FileInputStream account = new FileInputStream(arguments[0])) {
            FirebaseOptions options =
                    FirebaseOptions.builder().setCredentials(GoogleCredentials.fromStream(account)).build();
            FirebaseMessaging client = FirebaseMessaging.getInstance(FirebaseApp.initializeApp(options));
            attempt("send", () -> client.send(message("good").build()));
            if (!arguments[arguments.length - 1].equals("once")) {
                judge(client);
            }
        } catch (Exception error) {
            error.printStackTrace();
            status = 1;
        }
        System.exit(status); // the client's own threads would keep a failed run alive
    }

    private static void judge(FirebaseMessaging client) {
        attempt("rich", () -> client.send(rich("rich")));
        attempt("dry run", () -> client.send(message("dry").build(), true));
        attempt("send each", () -> counted(client.sendEach(many("each"))));
        attempt("send each async", () -> counted(client.sendEachAsync(many("async")).get()));
        MulticastMessage multicast =
                MulticastMessage.builder().addAllTokens(List.of("multi-1", "multi-2")).putData("a", "b").build();
        attempt("multicast", () -> counted(client.sendEachForMulticast(multicast)));
        topics(client);
        for (String token : List.of("gone", "busy")) {
            attempt(token, () -> client.send(message(token).build()));
        }
        Message big = Message.builder().setToken("big").putData("a", "b".repeat(5000)).build();
        attempt("too big", () -> client.send(big));
        Message reserved = Message.builder().setToken("reserved").putData("from", "b").build();
        attempt("reserved", () -> client.send(reserved));
    }

    /** Topics are changed through both of the client's interfaces: the older one asks another host. */
    private static void topics(FirebaseMessaging client) {
        List<String> both = List.of("good", "rich");
        attempt("subscribe", () -> changed(client.subscribeToTopic(both, TOPIC)));
        attempt("subscribe again", () -> changed(client.subscribeToTopic(both, TOPIC)));
        attempt("topic", () -> client.send(Message.builder().setTopic(TOPIC).putData("a", "b").build()));
        String condition = "'news' in topics && !('sport' in topics)";
        attempt("condition", () -> client.send(Message.builder().setCondition(condition).putData("a", "b").build()));
        attempt("unsubscribe", () -> changed(client.unsubscribeFromTopic(both, TOPIC)));
        attempt("subscribe by iid", () -> changed(client.subscribeToTopicLegacy(both, TOPIC)));
        attempt("unsubscribe by iid", () -> changed(client.unsubscribeFromTopicLegacy(both, TOPIC)));
    }

    private static void attempt(String step, Callable<Object> call) {
        Map<String, Object> facts = new LinkedHashMap<>();
        facts.put("step", step);
        try {
            facts.put("value", call.call());
            facts.put("ok", true);
        } catch (Exception error) { // the test decides which error is right
            facts.put("ok", false);
            facts.put("error", named(error));
            facts.put("detail", error.toString());
        }
        System.out.println(new Gson().toJson(facts));
    }

    /** Returns the codes that the client gives an error: that of all Firebase and that of messaging. */
    private static String named(Exception error) {
        if (error instanceof FirebaseMessagingException) {
            FirebaseMessagingException own = (FirebaseMessagingException) error;
            return own.getErrorCode() + "/" + own.getMessagingErrorCode();
        }
        return error.getClass().getSimpleName();
    }

    private static Message.Builder message(String token) {
        Notification notification = Notification.builder().setTitle("Hello").setBody("from a judge").build();
        return Message.builder().setToken(token).setNotification(notification).putData("key", "value");
    }

    private static Message rich(String token) {
        AndroidNotification notification =
                AndroidNotification.builder().setChannelId("main").setColor("#ff0000").build();
        AndroidConfig android = AndroidConfig.builder()
                .setCollapseKey("news")
                .setPriority(AndroidConfig.Priority.HIGH)
                .setTtl(3_600_000)
                .setNotification(notification)
                .build();
        Aps aps = Aps.builder().setBadge(3).setSound("default").build();
        return message(token)
                .setAndroidConfig(android)
                .setApnsConfig(ApnsConfig.builder().putHeader("apns-priority", "10").setAps(aps).build())
                .setWebpushConfig(WebpushConfig.builder().putHeader("Urgency", "high").build())
                .setFcmOptions(FcmOptions.withAnalyticsLabel("judges"))
                .build();
    }

    private static List<Message> many(String prefix) {
        List<Message> messages = new ArrayList<>();
        for (int number = 0; number < 19; number++) {
            messages.add(message(prefix + "-" + number).build());
        }
        messages.add(message("gone-many").build());
        return messages;
    }

    private static Map<String, Object> counted(BatchResponse batch) {
        List<String> errors = new ArrayList<>();
        for (SendResponse response : batch.getResponses()) {
            if (!response.isSuccessful()) {
                errors.add(named(response.getException()));
            }
        }
        return Map.of("success", batch.getSuccessCount(), "failure", batch.getFailureCount(), "errors", errors);
    }

    private static Map<String, Object> changed(TopicManagementResponse answer) {
        return Map.of("success", answer.getSuccessCount(), "failure", answer.getFailureCount());
    }
}
