package stentor.junit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.eatthepath.pushy.apns.ApnsClient;
import com.eatthepath.pushy.apns.ApnsClientBuilder;
import com.eatthepath.pushy.apns.auth.ApnsSigningKey;
import com.eatthepath.pushy.apns.util.SimpleApnsPushNotification;
import com.google.api.client.http.HttpTransport;
import com.google.api.client.http.javanet.NetHttpTransport;
import com.google.auth.oauth2.GoogleCredentials;
import com.google.firebase.FirebaseApp;
import com.google.firebase.FirebaseOptions;
import com.google.firebase.messaging.FirebaseMessaging;
import com.google.firebase.messaging.FirebaseMessagingException;
import com.google.firebase.messaging.Message;
import com.google.firebase.messaging.MessagingErrorCode;
import java.net.HttpURLConnection;
import java.nio.file.Files;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Unmodified libraries for senders, pointed at the emulators by the lines of docs/test-kits.md. */
class SdksTest {
    @RegisterExtension
    static final FcmEmulator fcm = new FcmEmulator();

    @RegisterExtension
    static final ApnsEmulator apns = new ApnsEmulator();

    @Test
    void firebase_admin_sends_and_gets_the_answer_that_was_chosen() throws Exception {
        HttpTransport transport = new NetHttpTransport.Builder()
                .setConnectionFactory(url -> (HttpURLConnection) fcm.url().resolve(url.getFile()).toURL().openConnection())
                .setSslSocketFactory(fcm.sslContext().getSocketFactory())
                .build();
        FirebaseOptions options = FirebaseOptions.builder()
                .setHttpTransport(transport)
                .setCredentials(GoogleCredentials.fromStream(Files.newInputStream(fcm.credentialFile()), () -> transport))
                .build();
        FirebaseMessaging messaging = FirebaseMessaging.getInstance(FirebaseApp.initializeApp(options));
        fcm.answer("gone", "UNREGISTERED");
        messaging.send(Message.builder().setFid("phone").putData("order", "7").build());
        Message toGone = Message.builder().setFid("gone").build();
        FirebaseMessagingException refusal =
                assertThrows(FirebaseMessagingException.class, () -> messaging.send(toGone));
        assertEquals(MessagingErrorCode.UNREGISTERED, refusal.getMessagingErrorCode());
        assertEquals(1, messaging.subscribeToTopic(List.of("phone"), "news").getSuccessCount());
        messaging.sendEach(List.of(Message.builder().setTopic("news").build()));
        List<String> tokens = fcm.messages().stream().map(ArrivedMessage::token).toList();
        assertEquals(List.of("phone", "/topics/news"), tokens);
    }

    @Test
    void pushy_sends_and_gets_the_answer_that_was_chosen() throws Exception {
        ApnsSigningKey key =
                ApnsSigningKey.loadFromPkcs8File(apns.credentialFile().toFile(), apns.teamId(), apns.keyId());
        ApnsClient client = new ApnsClientBuilder()
                .setApnsServer(apns.host(), apns.port())
                .setTrustedServerCertificateChain(apns.caFile().toFile())
                .setSigningKey(key)
                .build();
        String phone = "ab".repeat(32);
        String gone = "cd".repeat(32);
        apns.answer(gone, "Unregistered");
        assertTrue(client.sendNotification(alert(phone)).get().isAccepted());
        assertEquals(Optional.of("Unregistered"), client.sendNotification(alert(gone)).get().getRejectionReason());
        client.close().get();
        ArrivedMessage arrived = apns.messages().get(0);
        assertEquals(phone, arrived.token());
        assertEquals(Optional.of("org.example.app"), arrived.topic());
    }

    private static SimpleApnsPushNotification alert(String token) {
        return new SimpleApnsPushNotification(token, "org.example.app", "{\"aps\":{\"alert\":\"Hello\"}}");
    }
}
