package stentor.junit;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.eatthepath.pushy.apns.ApnsClient;
import com.eatthepath.pushy.apns.ApnsClientBuilder;
import com.eatthepath.pushy.apns.auth.ApnsSigningKey;
import com.eatthepath.pushy.apns.util.SimpleApnsPushNotification;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

class FirstTest {
    @RegisterExtension
    static final ApnsEmulator apns = new ApnsEmulator();

    @Test
    void a_buyer_is_told_that_the_order_is_ready() throws Exception {
        ApnsClient client = new ApnsClientBuilder()
                .setApnsServer(apns.host(), apns.port())
                .setTrustedServerCertificateChain(apns.caFile().toFile())
                .setSigningKey(ApnsSigningKey.loadFromPkcs8File(apns.credentialFile().toFile(), apns.teamId(), apns.keyId()))
                .build();
        String token = "ab".repeat(32);
        client.sendNotification(new SimpleApnsPushNotification(token, "org.example.shop", "{\"order\":7}")).get();
        assertEquals(7, apns.messages(token).get(0).payload().get("order").getAsInt());
    }
}
