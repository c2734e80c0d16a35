package stentor.junit;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/**
 * An emulator in a process of its own, on free ports of this machine.
 *
 * <p>In a static field it runs for all tests of a class and is reset before each of them; in another field it runs for one test. It ends
 * with this process at the latest.
 *
 * @param <E> the emulator itself
 */
public abstract class Emulator<E extends Emulator<E>>
        implements BeforeAllCallback, BeforeEachCallback, AfterEachCallback, AfterAllCallback, AutoCloseable {
    /** The longest wait of one request for messages. */
    private static final long WAIT_MILLIS_MAX = 30_000;

    private final String service;
    private final String credential;
    private final List<JsonObject> answers = new ArrayList<>();
    private JsonObject policy = new JsonObject();
    private Optional<Path> program = Optional.empty();
    private boolean isForClass;
    private EmulatorProcess process;
    private Control control;

    Emulator(String service, String credential) {
        this.service = service;
        this.credential = credential;
    }

    /** Sets the policy, as JSON, from the start and again after a reset; everything is accepted by default. */
    public final E withPolicy(String json) {
        policy = JsonParser.parseString(json).getAsJsonObject();
        return self();
    }

    /** Sets the path of stentor; by default that of STENTOR_BIN (a system property or in the environment), or the first in PATH. */
    public final E withProgram(Path path) {
        program = Optional.of(path);
        return self();
    }

    /** Starts the emulator, as the extension does by itself. */
    public final E start() {
        process = new EmulatorProcess(service, credential, policy.toString(), program);
        control = new Control(ready("control"));
        answers.clear();
        return self();
    }

    /** Returns the URL of the push service. */
    public final URI url() {
        return URI.create(ready("url"));
    }

    /** Returns the host of the push service. */
    public final String host() {
        return url().getHost();
    }

    /** Returns the port of the push service. */
    public final int port() {
        return url().getPort();
    }

    /** Returns the file of the certificate that clients must trust. */
    public final Path caFile() {
        return Path.of(ready("ca_file"));
    }

    /** Returns the file of a sender's credential: a service account (FCM) or a signing key (APNs). */
    public final Path credentialFile() {
        return Path.of(made("file"));
    }

    /** Returns the process of the emulator. */
    public final long pid() {
        return running().pid();
    }

    /** Returns settings for TLS clients that trust the emulator, and nobody else. */
    public final SSLContext sslContext() {
        try (InputStream pem = Files.newInputStream(caFile())) {
            KeyStore trusted = KeyStore.getInstance(KeyStore.getDefaultType());
            trusted.load(null, null);
            trusted.setCertificateEntry("emulator", CertificateFactory.getInstance("X.509").generateCertificate(pem));
            TrustManagerFactory managers = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
            managers.init(trusted);
            SSLContext context = SSLContext.getInstance("TLS");
            context.init(null, managers.getTrustManagers(), null);
            return context;
        } catch (IOException | GeneralSecurityException error) {
            throw new EmulatorException(caFile() + " cannot be used", error);
        }
    }

    /** Returns the messages that were accepted since the last reset, the latest 10,000. */
    public final List<ArrivedMessage> messages() {
        return behind(0, 0);
    }

    /** Returns those for a token. */
    public final List<ArrivedMessage> messages(String token) {
        return messages().stream().filter(message -> message.token().equals(name(token))).toList();
    }

    /** Waits until this number of messages has been accepted, and returns them; throws after the time limit. */
    public final List<ArrivedMessage> waitFor(int count, Duration limit) {
        return waitFor(count, Optional.empty(), limit);
    }

    /** Does the same with the messages for a token. */
    public final List<ArrivedMessage> waitFor(int count, String token, Duration limit) {
        return waitFor(count, Optional.of(token), limit);
    }

    /** Refuses a token with an error of the push service. The latest answer for a token counts. */
    public final void answer(String token, String error) {
        JsonObject script = new JsonObject();
        script.add("then", refusal(error));
        put(token, script);
    }

    /** Refuses the next requests for a token. */
    public final void answer(String token, String error, int times) {
        JsonObject step = new JsonObject();
        step.add("answer", refusal(error));
        step.addProperty("times", times);
        JsonArray steps = new JsonArray();
        steps.add(step);
        JsonObject script = new JsonObject();
        script.add("answers", steps);
        put(token, script);
    }

    /** Replaces the policy and all answers, until the next reset. */
    public final void setPolicy(String json) {
        ask("PUT", "/policy", json);
        answers.clear();
    }

    /** Returns the counts of a token or of /topics/NAME since the last reset. */
    public final TokenCounts counts(String token) {
        JsonObject counts = ask("GET", "/tokens/" + name(token), null);
        return new TokenCounts(
                counts.get("attempts").getAsInt(),
                counts.get("accepted").getAsInt(),
                counts.get("rejected").getAsInt(),
                counts.get("validate_only").getAsInt());
    }

    /** Forgets messages, counts and answers, and returns to the policy of the start. */
    public final void reset() {
        ask("POST", "/reset", null);
        answers.clear();
    }

    /** Ends the emulator and removes its files. */
    @Override
    public final void close() {
        if (process != null) {
            process.stop();
            process = null;
        }
    }

    @Override
    public final void beforeAll(ExtensionContext context) {
        isForClass = true;
        start();
    }

    @Override
    public final void beforeEach(ExtensionContext context) {
        if (isForClass) {
            reset();
        } else {
            start();
        }
    }

    @Override
    public final void afterEach(ExtensionContext context) {
        if (!isForClass) {
            close();
        }
    }

    @Override
    public final void afterAll(ExtensionContext context) {
        close();
    }

    abstract E self();

    /** Returns the name under which the emulator knows a token. */
    String name(String token) {
        return token;
    }

    /** Returns a fact of the credential. */
    final String made(String fact) {
        return running().ready().getAsJsonObject("credential").get(fact).getAsString();
    }

    private String ready(String fact) {
        return running().ready().get(fact).getAsString();
    }

    private EmulatorProcess running() {
        if (process == null) {
            throw new EmulatorException("the emulator does not run: register it with @RegisterExtension, or call start()");
        }
        return process;
    }

    private List<ArrivedMessage> waitFor(int count, Optional<String> token, Duration limit) {
        long deadline = System.nanoTime() + limit.toNanos();
        List<ArrivedMessage> arrived = new ArrayList<>();
        long waitMillis = 0;
        while (true) {
            arrived.addAll(behind(last(arrived), waitMillis));
            List<ArrivedMessage> found = arrived.stream()
                    .filter(message -> token.map(this::name).map(message.token()::equals).orElse(true))
                    .toList();
            long left = (deadline - System.nanoTime()) / 1_000_000;
            if (found.size() >= count) {
                return found;
            }
            if (left <= 0) {
                String of = token.map(name -> " for " + name).orElse("");
                throw new EmulatorException(
                        found.size() + " of " + count + " messages" + of + " have arrived in " + limit.toMillis() + " ms");
            }
            waitMillis = Math.min(left, WAIT_MILLIS_MAX);
        }
    }

    /** Returns the messages behind a number. Waits for one if there is none yet. */
    private List<ArrivedMessage> behind(long number, long waitMillis) {
        List<ArrivedMessage> arrived = new ArrayList<>();
        while (true) {
            // Only the first page may be waited for.
            long after = Math.max(number, last(arrived));
            long wait = arrived.isEmpty() ? waitMillis : 0;
            JsonArray page = ask("GET", "/messages?after=" + after + "&wait_ms=" + wait, null).getAsJsonArray("messages");
            if (page.isEmpty()) {
                return arrived;
            }
            for (JsonElement message : page) {
                arrived.add(ArrivedMessage.of(message));
            }
        }
    }

    private static long last(List<ArrivedMessage> arrived) {
        return arrived.isEmpty() ? 0 : arrived.get(arrived.size() - 1).number();
    }

    private static JsonObject refusal(String code) {
        JsonObject error = new JsonObject();
        error.addProperty("code", code);
        JsonObject answer = new JsonObject();
        answer.add("error", error);
        return answer;
    }

    private void put(String token, JsonObject script) {
        script.addProperty("token", name(token));
        JsonArray scripts = new JsonArray();
        scripts.add(script);
        answers.forEach(scripts::add);
        if (policy.has("scripts")) {
            scripts.addAll(policy.getAsJsonArray("scripts"));
        }
        JsonObject next = policy.deepCopy();
        next.add("scripts", scripts);
        ask("PUT", "/policy", next.toString());
        answers.add(0, script);
    }

    private JsonObject ask(String method, String path, String body) {
        EmulatorProcess asked = running();
        try {
            return control.ask(method, path, body);
        } catch (IOException error) {
            throw new EmulatorException(
                    asked.ended().orElse("the emulator does not answer: " + error.getMessage()), error);
        }
    }
}
