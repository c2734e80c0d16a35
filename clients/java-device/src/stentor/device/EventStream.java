package stentor.device;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;

/** Server-Sent Events (WHATWG HTML, 9.2), as far as the gateway writes them: one line of data each. */
final class EventStream implements AutoCloseable {
    /** The server sends a comment every 30 seconds: after three that are missing the line is dead. */
    private static final Duration SILENCE_LIMIT = Duration.ofSeconds(100);

    private static final int LINE_MAX_BYTES = 1024 * 1024;

    private final InputStream input;
    /** Since when the next byte is waited for; while a message is handled nobody waits. */
    private volatile long heardNanos = System.nanoTime();
    private volatile boolean isWaiting;

    EventStream(InputStream input) {
        this.input = new BufferedInputStream(input);
    }

    /** One event; its name is empty for a comment. */
    static final class Event {
        final String name;
        final String data;

        Event(String name, String data) {
            this.name = name;
            this.data = data;
        }
    }

    /** Waits for the next event. Throws IOException at the end of the stream. */
    Event next() throws IOException {
        heardNanos = System.nanoTime();
        isWaiting = true;
        try {
            return read();
        } finally {
            isWaiting = false;
        }
    }

    private Event read() throws IOException {
        String name = "";
        String data = "";
        for (String line = line(); !line.isEmpty(); line = line()) {
            if (line.startsWith("event:")) {
                name = line.substring(6).trim();
            } else if (line.startsWith("data:")) {
                data = line.substring(5).trim();
            }
        }
        return new Event(name, data);
    }

    /** Ends the stream when nothing has come for too long: the client of the JDK has no limit for that. */
    void closeIfSilent() throws IOException {
        if (isWaiting && System.nanoTime() - heardNanos > SILENCE_LIMIT.toNanos()) {
            close();
        }
    }

    /** Ends the stream; whoever reads it is woken. */
    @Override
    public void close() throws IOException {
        input.close();
    }

    private String line() throws IOException {
        ByteArrayOutputStream line = new ByteArrayOutputStream();
        for (int one = input.read(); one != '\n'; one = input.read()) {
            if (one < 0) {
                throw new EOFException("the server ended the connection");
            }
            if (line.size() >= LINE_MAX_BYTES) {
                throw new IOException("a line is longer than " + LINE_MAX_BYTES + " bytes");
            }
            line.write(one);
        }
        heardNanos = System.nanoTime();
        return line.toString(StandardCharsets.UTF_8).replaceAll("\r$", "");
    }
}
