import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.Map;
import stentor.device.Backoff;
import stentor.device.Device;
import stentor.device.Message;

/**
 * A device for the story: Story FOLDER; STENTOR_URL and STENTOR_KEY say where and how.
 *
 * <p>It writes each message into FOLDER/got.ndjson, holds it while FOLDER/hold is there, and tells the app what it heard and what
 * its token is.
 */
public final class Story {
    private final Path folder;
    private final Device device;

    private Story(Path folder) throws IOException {
        this.folder = folder;
        Device.Builder builder = Device.builder(folder, System.getenv("STENTOR_URL"));
        Backoff soon = new Backoff(Duration.ofMillis(100), Duration.ofSeconds(1));
        this.device = builder.key(System.getenv("STENTOR_KEY")).topics("news").backoff(soon).build();
    }

    public static void main(String[] arguments) throws Exception {
        new Story(Path.of(arguments[0])).run();
    }

    private void run() throws Exception {
        device.onToken(token -> send(Map.of("token", token), null));
        device.onNotification(message -> note("notification", message)).onData(this::work).run();
    }

    private void work(Message message) {
        note("data", message);
        while (Files.exists(folder.resolve("hold"))) {
            Thread.onSpinWait();
        }
        send(Map.of("heard", message.id()), "re-" + message.id());
    }

    private void note(String kind, Message message) {
        String line = "{\"kind\":\"" + kind + "\"," + message.json().substring(1) + "\n";
        try {
            Path got = folder.resolve("got.ndjson");
            Files.writeString(got, line, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        } catch (IOException failed) {
            throw new UncheckedIOException(failed);
        }
    }

    private void send(Map<String, String> data, String name) {
        try {
            device.send(data, null, name);
        } catch (IOException failed) {
            throw new UncheckedIOException(failed);
        }
    }
}
