package stentor.device;

import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublisher;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;

/** The server as a device sees it. What it cannot do now is an IOException. */
final class Service {
    private static final Duration CONNECT_LIMIT = Duration.ofSeconds(10);
    private static final Duration ANSWER_LIMIT = Duration.ofSeconds(60);
    /** The header that the server repeats in its refusals. */
    private static final String REQUEST_ID = "X-Request-Id";
    /** Refusals that may pass. */
    private static final Set<Integer> PASSING = Set.of(408, 409, 429);

    private final URI base;
    private final HttpClient http;

    Service(String server, HttpClient http) {
        this.base = URI.create(server.replaceAll("/+$", "") + "/gateway/v1/");
        if (base.getHost() == null || !Set.of("http", "https").contains(base.getScheme())) {
            throw new IllegalArgumentException("the server must be like https://push.example.org");
        }
        this.http = http != null ? http : usual();
    }

    /** The device's token opens nothing. */
    static final class UnknownDevice extends Exception {
        private static final long serialVersionUID = 1L;

        UnknownDevice(String why) {
            super(why);
        }
    }

    /** The server will never do what was asked. */
    static final class Refused extends Exception {
        private static final long serialVersionUID = 1L;

        Refused(String why) {
            super(why);
        }
    }

    /** Registers the device. */
    Map<String, Object> join(String key, Map<String, Object> told) throws IOException, Refused, UnknownDevice {
        return joined(answer("devices", "Bearer " + key, BodyPublishers.ofString(Json.write(told))));
    }

    /** Asks for another token; the present one is good until that is first used. */
    Map<String, Object> renew(Memory own) throws IOException, Refused, UnknownDevice {
        return joined(answer("device/token", proof(own), BodyPublishers.noBody()));
    }

    /** Asks whether the server knows the device. */
    void show(Memory own) throws IOException, Refused, UnknownDevice {
        done(request("device", proof(own)).timeout(ANSWER_LIMIT).GET());
    }

    /** Removes a device that nobody is any more. */
    void withdraw(Memory own) throws IOException, Refused, UnknownDevice {
        done(request("device", proof(own)).timeout(ANSWER_LIMIT).DELETE());
    }

    /** Confirms a message; that is on the server's disk when this returns. */
    void confirm(Memory own, String message) throws IOException, Refused, UnknownDevice {
        String body = Json.write(Map.of("messages", List.of(message)));
        answer("receipts", proof(own), BodyPublishers.ofString(body));
    }

    /** Sends a message to the app; it is on the server's disk when this returns. */
    void send(Memory own, String message) throws IOException, Refused, UnknownDevice {
        answer("upstream", proof(own), BodyPublishers.ofString(message));
    }

    /** Has the server seal for the device from now on. */
    void putKeys(Memory own, Map<String, Object> keys) throws IOException, Refused, UnknownDevice {
        HttpRequest.Builder request = request("device/keys", proof(own)).timeout(ANSWER_LIMIT);
        done(request.header("Content-Type", "application/json").PUT(BodyPublishers.ofString(Json.write(keys))));
    }

    private String done(HttpRequest.Builder request) throws IOException, Refused, UnknownDevice {
        HttpResponse<String> response = exchange(request.build(), BodyHandlers.ofString());
        if (response.statusCode() / 100 != 2) {
            throw refusal(response, response.body());
        }
        return response.body();
    }

    /** Opens the stream of messages. */
    InputStream events(Memory own) throws IOException, Refused, UnknownDevice {
        // The limit is for the answer's head alone: what the stream says may come much later.
        HttpRequest request = request("events", proof(own)).timeout(ANSWER_LIMIT).GET().build();
        HttpResponse<InputStream> response = exchange(request, BodyHandlers.ofInputStream());
        if (response.statusCode() == 200) {
            return response.body();
        }
        try (InputStream body = response.body()) {
            throw refusal(response, new String(body.readAllBytes(), StandardCharsets.UTF_8));
        }
    }

    private static HttpClient usual() {
        // One connection for each of the two threads is what 1.1 comes to, and nothing has to be negotiated.
        HttpClient.Builder builder = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1);
        return builder.connectTimeout(CONNECT_LIMIT).build();
    }

    private HttpRequest.Builder request(String path, String proof) {
        HttpRequest.Builder request = HttpRequest.newBuilder(base.resolve(path)).header("Authorization", proof);
        return request.header(REQUEST_ID, UUID.randomUUID().toString());
    }

    private Map<String, Object> answer(String path, String proof, BodyPublisher body)
            throws IOException, Refused, UnknownDevice {
        HttpRequest.Builder request = request(path, proof).timeout(ANSWER_LIMIT).POST(body);
        request.header("Content-Type", "application/json");
        String text = done(request);
        try {
            return Json.object(text);
        } catch (IllegalArgumentException foreign) {
            // A network that wants a login answers so for everybody: nothing was done.
            throw new IOException("the answer is not the server's", foreign);
        }
    }

    /** Returns what a device proves itself with, if it is all there. */
    private static Map<String, Object> joined(Map<String, Object> answer) throws IOException {
        if (!List.of("device", "token", "secret").stream().allMatch(name -> answer.get(name) instanceof String)) {
            throw new IOException("the answer is not the server's");
        }
        return answer;
    }

    private <T> HttpResponse<T> exchange(HttpRequest request, HttpResponse.BodyHandler<T> body) throws IOException {
        try {
            return http.send(request, body);
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
            throw new IOException("interrupted", stopped);
        }
    }

    /** Throws what a refusal means: that the device is not known, that it is for good, or that it may pass. */
    private static IOException refusal(HttpResponse<?> response, String text) throws Refused, UnknownDevice {
        int status = response.statusCode();
        Map<String, Object> problem = object(text);
        String detail = status + ": " + problem.getOrDefault("detail", "");
        // Whoever stands between may answer 401 too: only the server's own word counts, and it shows that it has read the request.
        boolean isEncrypted = "https".equals(response.request().uri().getScheme());
        Object nonce = response.request().headers().firstValue(REQUEST_ID).orElse("");
        if (!problem.containsKey("code") || !(isEncrypted || nonce.equals(problem.get("request_id")))) {
            return new IOException(status + ", and not by the server itself");
        }
        if (status == 401) {
            throw new UnknownDevice(detail);
        }
        if (status / 100 == 4 && !PASSING.contains(status)) {
            throw new Refused(detail);
        }
        return new IOException(detail);
    }

    private static Map<String, Object> object(String text) {
        try {
            return Json.object(text);
        } catch (IllegalArgumentException none) {
            return Map.of();
        }
    }

    private static String proof(Memory own) {
        byte[] both = (own.token + ":" + own.secret).getBytes(StandardCharsets.UTF_8);
        return "Basic " + Base64.getEncoder().encodeToString(both);
    }
}
