package stentor.device;

import java.time.Duration;
import java.util.concurrent.ThreadLocalRandom;

/** Waits that double from the first to the last, each up to half longer, so that devices do not come back all at once. */
public final class Backoff {
    /** From one second to five minutes. */
    public static final Backoff USUAL = new Backoff(Duration.ofSeconds(1), Duration.ofSeconds(300));

    /** After a connection that lasted this long the next wait is the first one again. */
    static final Duration GOOD_CONNECTION = Duration.ofSeconds(60);

    /** Doublings that surely fit into a number. */
    private static final int DOUBLINGS_MAX_COUNT = 30;

    private final Duration first;
    private final Duration last;

    public Backoff(Duration first, Duration last) {
        this.first = first;
        this.last = last;
    }

    /** Returns the wait after so many failures in a row, of which there is at least one. */
    Duration wait(int failures) {
        double doubled = first.toMillis() * Math.pow(2, Math.min(failures - 1, DOUBLINGS_MAX_COUNT));
        double longest = Math.min(last.toMillis(), doubled);
        return Duration.ofMillis((long) (longest * ThreadLocalRandom.current().nextDouble(1.0, 1.5)));
    }
}
