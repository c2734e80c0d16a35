import com.eatthepath.pushy.apns.server.MockApnsServer;
import com.eatthepath.pushy.apns.server.MockApnsServerBuilder;
import com.eatthepath.pushy.apns.server.MockApnsServerListener;
import com.eatthepath.pushy.apns.server.RejectionReason;
import com.eatthepath.pushy.apns.server.UnregisteredDeviceTokenException;
import io.netty.buffer.ByteBuf;
import io.netty.handler.codec.http2.Http2Headers;
import java.io.File;
import java.nio.charset.StandardCharsets;
import java.security.Security;
import java.time.Instant;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;

/** pushy's mock of APNs, unmodified; it takes every push but those to tokens that begin with "dead". */
public final class Mock {
    private static final AtomicInteger ACCEPTED = new AtomicInteger();
    private static final AtomicInteger REFUSED = new AtomicInteger();
    /** Path and body of each push: as many as pushes if none came twice. */
    private static final Set<String> DIFFERENT = ConcurrentHashMap.newKeySet();

    /** Takes the certificate, its key, the version of TLS, and the stream limit. */
    public static void main(String[] arguments) throws Exception {
        if (arguments[2].equals("TLSv1.2")) {
            Security.setProperty("jdk.tls.disabledAlgorithms", "TLSv1.3"); // the mock cannot be told
        }
        MockApnsServer server = new MockApnsServerBuilder()
                .setServerCredentials(new File(arguments[0]), new File(arguments[1]), null)
                .setUseAlpn(true)
                .setMaxConcurrentStreams(Integer.parseInt(arguments[3]))
                .setHandlerFactory(session -> (headers, body) -> {
                    if (headers.path().toString().startsWith("/3/device/dead")) {
                        throw new UnregisteredDeviceTokenException(Instant.ofEpochSecond(1_750_000_000));
                    }
                })
                .setListener(new Listener())
                .build();
        System.out.println("port " + server.start(0).get());
        while (System.in.read() >= 0) {
            System.out.println(ACCEPTED + " " + REFUSED + " " + DIFFERENT.size());
        }
        System.exit(0); // the parent is gone
    }

    private static final class Listener implements MockApnsServerListener {
        @Override
        public void handlePushNotificationAccepted(Http2Headers headers, ByteBuf body) {
            ACCEPTED.incrementAndGet();
            DIFFERENT.add(headers.path() + " " + body.toString(StandardCharsets.US_ASCII));
        }

        @Override
        public void handlePushNotificationRejected(Http2Headers headers, ByteBuf body, RejectionReason reason,
                Instant since) {
            REFUSED.incrementAndGet();
            DIFFERENT.add(headers.path() + " " + body.toString(StandardCharsets.US_ASCII));
        }
    }
}
