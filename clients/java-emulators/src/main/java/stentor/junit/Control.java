package stentor.junit;

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;

/** Requests to the control port of an emulator. */
final class Control {
    /** Longer than the longest wait for a message. */
    private static final Duration REPLY_MAX = Duration.ofSeconds(60);

    private final String url;
    private final HttpClient http = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

    Control(String url) {
        this.url = url;
    }

    /** Returns the reply to a request. Throws IOException where the control port is gone. */
    JsonObject ask(String method, String path, String body) throws IOException {
        HttpRequest request = HttpRequest.newBuilder(URI.create(url + path))
                .timeout(REPLY_MAX)
                .method(method, body == null ? BodyPublishers.noBody() : BodyPublishers.ofString(body))
                .build();
        HttpResponse<String> response;
        try {
            response = http.send(request, BodyHandlers.ofString());
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new EmulatorException("the request was interrupted", interrupted);
        }
        JsonObject reply = JsonParser.parseString(response.body()).getAsJsonObject();
        if (response.statusCode() != 200) {
            throw new EmulatorException("the emulator refuses " + method + " " + path + ": " + reply.get("error"));
        }
        return reply;
    }
}
