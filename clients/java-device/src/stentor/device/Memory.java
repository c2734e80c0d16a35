package stentor.device;

import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;

/** Who a device is, and what it has got. Only the thread that listens changes it. */
final class Memory {
    /** Messages that are remembered, so that one that comes again is recognised: more than a server leaves unconfirmed. */
    static final int SEEN_MAX_COUNT = 1_024;
    /** How long it is remembered who the device was, after the server has said that it does not know it. */
    static final Duration FORMER_LIFE = Duration.ofDays(30);

    final String server;
    final String device;
    final String token;
    final String secret;
    /** When it got its token, in seconds since 1970. */
    final long tokenSince;
    /** When the server first said that it does not know the device, in seconds since 1970; 0 where it knows it. */
    long refusedSince;
    /** The token that the program was told last. */
    String toldToken = "";
    final Deque<String> seen = new ArrayDeque<>();
    /** What opens messages that are sealed for the device, and whether the server was told of it; null where it has none. */
    Map<String, Object> keys;
    /** The same keys, ready to open something. */
    Keys opener;

    private Memory(String server, Map<String, Object> joined, long tokenSince) {
        this.server = server;
        this.device = Objects.requireNonNull((String) joined.get("device"), "device");
        this.token = Objects.requireNonNull((String) joined.get("token"), "token");
        this.secret = Objects.requireNonNull((String) joined.get("secret"), "secret");
        this.tokenSince = tokenSince;
    }

    /** Returns what a registration gave. */
    static Memory of(String server, Map<String, Object> joined) {
        return new Memory(server, joined, System.currentTimeMillis() / 1_000);
    }

    /** Returns what was kept. */
    static Memory read(String text) {
        Map<String, Object> kept = Json.object(text);
        Memory own = new Memory((String) kept.get("server"), kept, (Long) kept.get("token_since"));
        if (kept.get("seen") instanceof Iterable) {
            ((Iterable<?>) kept.get("seen")).forEach(one -> own.seen.add((String) one));
        }
        own.toldToken = kept.get("told_token") instanceof String ? (String) kept.get("told_token") : "";
        own.refusedSince = kept.get("refused_since") instanceof Long ? (Long) kept.get("refused_since") : 0;
        if (kept.get("keys") != null) {
            own.keep(new LinkedHashMap<>(Json.members(kept.get("keys"))));
        }
        return own;
    }

    /** Returns it with another token. */
    Memory renewed(Map<String, Object> joined) {
        Memory own = of(server, joined);
        own.seen.addAll(seen);
        own.toldToken = toldToken;
        own.keys = keys;
        own.opener = opener;
        return own;
    }

    /** Notes that the server does not know the device. */
    void noteRefusal() {
        refusedSince = refusedSince == 0 ? System.currentTimeMillis() / 1_000 : refusedSince;
    }

    /** Returns whether the server has not known the device for so long that it never will. */
    boolean isOver() {
        return refusedSince > 0 && refusedSince < System.currentTimeMillis() / 1_000 - FORMER_LIFE.getSeconds();
    }

    /** Returns what is to be kept. */
    String write() {
        Map<String, Object> kept = new LinkedHashMap<>();
        kept.put("server", server);
        kept.put("device", device);
        kept.put("token", token);
        kept.put("secret", secret);
        kept.put("token_since", tokenSince);
        kept.put("seen", seen);
        kept.put("told_token", toldToken);
        kept.put("refused_since", refusedSince);
        if (keys != null) {
            kept.put("keys", keys);
        }
        return Json.write(kept);
    }

    /** Takes keys over. Throws IllegalArgumentException for what are none. */
    void keep(Map<String, Object> kept) {
        opener = Keys.read(kept);
        keys = kept;
    }

    /** Notes a message; the oldest is forgotten. */
    void noteSeen(String message) {
        if (seen.size() >= SEEN_MAX_COUNT) {
            seen.removeFirst();
        }
        seen.addLast(message);
    }
}
