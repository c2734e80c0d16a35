package stentor.device;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;

/** The parts of the library by themselves: java stentor.device.Parts FOLDER. */
public final class Parts {
    private static final Map<String, Object> JOINED = Map.of("device", "dev_1", "token", "t", "secret", "s");

    // RFC 8291, appendix A.
    private static final String UA_PUBLIC =
            "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4";
    private static final Map<String, Object> KEYS =
            Map.of("private", "q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94", "auth", "BTBZMqHH6r4Tts7J_aSIgg");
    private static final byte[] BODY = Base64.getUrlDecoder().decode(
            "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8w"
            + "EqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN");
    private static final String TEXT = "When I grow up, I want to be a watermelon";

    private Parts() {}

    /** What is checked. */
    private interface Part {
        void check(Path folder) throws Exception;
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, Part> parts = new LinkedHashMap<>();
        parts.put("what was kept is remembered and only its owner may read it", Parts::memory);
        parts.put("a memory that is none is told", Parts::foreignMemory);
        parts.put("keys are remembered", Parts::rememberedKeys);
        parts.put("the example of RFC 8291 is opened, and nothing that was changed", folder -> sealed());
        parts.put("what a sender has sealed is the data", folder -> sealedBySender());
        parts.put("no more is remembered than is needed", folder -> seen());
        parts.put("what is sent waits in order and what is no message is set aside", Parts::outbox);
        parts.put("a name that leads elsewhere is refused", Parts::names);
        parts.put("a stranger who says 401 changes nothing", Parts::stranger);
        parts.put("who the device was is tried again and comes back", Parts::former);
        parts.put("waits double and are spread", folder -> waits());
        parts.put("a stream is read as it was written", folder -> stream());
        parts.put("JSON is read as it was written", folder -> json());
        parts.put("what is no JSON is refused", folder -> noJson());
        int number = 0;
        for (Map.Entry<String, Part> one : parts.entrySet()) {
            one.getValue().check(Path.of(arguments[0], "part-" + number++));
            System.out.println(one.getKey());
        }
        System.out.println(number + " parts are content");
    }

    private static void memory(Path path) throws IOException {
        Folder folder = new Folder(path);
        same(null, folder.read());
        Memory own = Memory.of("http://localhost", JOINED);
        own.noteSeen("msg_1");
        own.toldToken = "t";
        folder.keep(own);
        folder.keep(own);
        same(own.write(), folder.read().write());
        Path file = path.resolve("device.json");
        same("rw-------", PosixFilePermissions.toString(Files.getPosixFilePermissions(file)));
        Files.writeString(file, own.write().replace("}", ",\"more\":{\"of\":[1]}}"));
        same("t", folder.read().token);
        Memory renewed = own.renewed(Map.of("device", "dev_1", "token", "t2", "secret", "s2"));
        same("[msg_1] t t2 s2", renewed.seen + " " + renewed.toldToken + " " + renewed.token + " " + renewed.secret);
    }

    /** What answers in the server's place, or as the server does. */
    private static final class Network implements AutoCloseable {
        final Map<String, String> known = new ConcurrentHashMap<>();
        final AtomicInteger joined = new AtomicInteger();
        volatile String portal;
        private final HttpServer server;

        Network() throws IOException {
            server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
            server.createContext("/", this::answer);
            server.start();
        }

        String url() {
            return "http://127.0.0.1:" + server.getAddress().getPort();
        }

        private void answer(HttpExchange asked) throws IOException {
            asked.getRequestBody().readAllBytes();
            String given = asked.getRequestHeaders().getFirst("Authorization").replaceFirst("^(Basic|Bearer) ", "");
            String path = asked.getRequestURI().getPath();
            if (portal != null) {
                say(asked, 401, portal);
            } else if (path.endsWith("/devices")) {
                int number = joined.incrementAndGet();
                known.put("t" + number, "dev_" + number);
                say(asked, 201, Json.write(Map.of("device", "dev_" + number, "token", "t" + number, "secret", "s")));
            } else if (known.containsKey(new String(Base64.getDecoder().decode(given), StandardCharsets.UTF_8).split(":")[0])) {
                say(asked, path.endsWith("/events") ? 503 : 200, "{}");
            } else {
                Object nonce = asked.getRequestHeaders().getFirst("X-Request-Id");
                say(asked, 401, Json.write(Map.of("code", "unauthorized", "request_id", nonce)));
            }
        }

        private static void say(HttpExchange asked, int status, String text) throws IOException {
            byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
            asked.sendResponseHeaders(status, bytes.length == 0 ? -1 : bytes.length);
            asked.getResponseBody().write(bytes);
            asked.close();
        }

        @Override
        public void close() {
            server.stop(0);
        }
    }

    private static Device run(Path folder, Network network, String key) throws IOException {
        Backoff backoff = new Backoff(Duration.ofMillis(10), Duration.ofMillis(20));
        Device device = Device.builder(folder, network.url()).key(key).backoff(backoff).build();
        Thread thread = new Thread(() -> {
            try {
                device.run();
            } catch (Exception ended) {
                throw new IllegalStateException(ended);
            }
        });
        thread.setDaemon(true);
        thread.start();
        return device;
    }

    private static void until(Callable<Boolean> holds) throws Exception {
        for (long end = System.nanoTime() + 20_000_000_000L; !holds.call(); Thread.sleep(10)) {
            if (System.nanoTime() > end) {
                throw new AssertionError("it does not come");
            }
        }
    }

    private static void stranger(Path path) throws Exception {
        try (Network network = new Network()) {
            Device device = run(path, network, "sk_join");
            until(() -> "dev_1".equals(device.id()));
            String kept = Files.readString(path.resolve("device.json"));
            for (String portal : List.of("<html>", "", "{}", "{\"code\":\"unauthorized\",\"request_id\":\"req_0\"}")) {
                network.portal = portal;
                Device other = run(path, network, null);
                Thread.sleep(100);
                same(kept, Files.readString(path.resolve("device.json")));
                other.stop();
                network.portal = null;
            }
            same(1, network.joined.get());
            device.stop();
        }
    }

    private static void former(Path path) throws Exception {
        try (Network network = new Network()) {
            Device device = run(path, network, "sk_join");
            until(() -> "dev_1".equals(device.id()));
            network.known.clear();
            until(() -> "dev_2".equals(device.id()));
            same(true, Files.exists(path.resolve("former-dev_1.json")));
            network.known.clear();
            network.known.put("t1", "dev_1");
            until(() -> "dev_1".equals(device.id()));
            same(2, network.joined.get());
            device.stop();
        }
    }

    private static void foreignMemory(Path path) throws IOException {
        Files.createDirectories(path);
        String noKeys = Memory.of("http://localhost", JOINED).write().replace("}", ",\"keys\":{}}");
        for (String text : List.of("{", "[]", "{\"token\":\"t\"}", noKeys)) {
            Files.writeString(path.resolve("device.json"), text);
            String wanted = "device.json cannot be read";
            try {
                new Folder(path).read();
            } catch (IOException told) {
                check(told.getMessage().contains(wanted), told.getMessage());
                continue;
            }
            throw new AssertionError(text + " is read");
        }
    }

    private static void rememberedKeys(Path path) throws IOException {
        Memory own = Memory.of("http://localhost", JOINED);
        own.keep(Keys.generate());
        new Folder(path).keep(own.renewed(JOINED));
        same(own.keys, new Folder(path).read().keys);
        Map<String, Object> one = own.opener.shared();
        check(!one.equals(Keys.read(Keys.generate()).shared()), "new keys are others");
    }

    private static void sealed() {
        Keys keys = Keys.read(KEYS);
        same(UA_PUBLIC, keys.shared().get("p256dh"));
        same(TEXT, new String(keys.open(BODY), StandardCharsets.UTF_8));
        refused(() -> Keys.read(Keys.generate()).open(BODY));
        for (int length : new int[] {0, 20, 86, BODY.length - 1}) {
            refused(() -> keys.open(Arrays.copyOf(BODY, length)));
        }
        for (int place : new int[] {0, 20, 30, 60, 90}) {
            byte[] changed = BODY.clone();
            changed[place] ^= 1;
            refused(() -> keys.open(changed));
        }
        for (Object number : new Object[] {1, "", "AA", "_".repeat(43)}) {
            refused(() -> Keys.read(Map.of("private", number, "auth", KEYS.get("auth"))));
        }
    }

    private static void sealedBySender() {
        String body = Base64.getEncoder().encodeToString(BODY);
        String sealed = "{\"id\":\"msg_1\",\"priority\":\"high\",\"sealed\":{\"body\":\"" + body + "\",\"by\":\"sender\"}}";
        String clear = "{\"id\":\"msg_1\",\"priority\":\"high\",\"data\":{\"body\":\"" + TEXT + "\"}}";
        same(clear, Keys.read(KEYS).opened(Message.read(sealed)).json());
        refused(() -> Keys.read(KEYS).opened(Message.read(sealed.replace("sender", "server"))));
    }

    private static void seen() {
        Memory own = Memory.of("http://localhost", JOINED);
        for (int number = 0; number <= Memory.SEEN_MAX_COUNT; number++) {
            own.noteSeen(String.valueOf(number));
        }
        same(Memory.SEEN_MAX_COUNT, own.seen.size());
        same("1", own.seen.peekFirst());
    }

    private static void outbox(Path path) throws IOException {
        Folder folder = new Folder(path);
        same(List.of(), folder.waiting());
        String first = folder.put(Map.of("n", "0"), Duration.ofSeconds(60), null);
        String second = folder.put(Map.of("n", "1"), null, null);
        List<Path> waiting = folder.waiting();
        same(path.resolve("outbox/" + first + ".json"), waiting.get(0));
        same(path.resolve("outbox/" + second + ".json"), waiting.get(1));
        String written = "{\"message_id\":\"" + first + "\",\"data\":{\"n\":\"0\"},\"ttl_seconds\":60}";
        same(written, Folder.message(waiting.get(0)));
        Path torn = path.resolve("outbox/0.json");
        Files.writeString(torn, "{");
        same(null, Folder.message(torn));
        same(2, folder.waiting().size());
    }

    private static void names(Path path) {
        Folder folder = new Folder(path);
        for (String name : List.of("../x", ".x", "a/b", "a\0", "ä", "x".repeat(101))) {
            refused(() -> folder.put(Map.of(), null, name));
        }
    }

    private static void waits() {
        Backoff backoff = new Backoff(Duration.ofSeconds(1), Duration.ofSeconds(300));
        for (int[] row : new int[][] {{1, 1}, {2, 2}, {5, 16}, {9, 256}, {10, 300}, {5_000, 300}}) {
            long[] waits = new long[50];
            Arrays.setAll(waits, index -> backoff.wait(row[0]).toMillis());
            long least = row[1] * 1_000L;
            check(Arrays.stream(waits).allMatch(wait -> wait >= least && wait <= least * 3 / 2), "wait " + row[0]);
            check(Arrays.stream(waits).distinct().count() > 1, "they are the same");
        }
    }

    private static void stream() {
        String text = ":\n\nevent: message\nid: msg_1\ndata: {\"id\":\"msg_1\"}\n\nevent:deleted\r\ndata:7\r\n\r\n";
        same("[ , message {\"id\":\"msg_1\"}, deleted 7, the end]", read(text).toString());
        same("[the end]", read("data: " + "x".repeat(2_000_000) + "\n\n").toString());
    }

    private static List<String> read(String text) {
        List<String> events = new ArrayList<>();
        try (EventStream stream = new EventStream(new ByteArrayInputStream(text.getBytes(StandardCharsets.UTF_8)))) {
            while (true) {
                EventStream.Event event = stream.next();
                events.add(event.name + " " + event.data);
            }
        } catch (IOException end) {
            events.add("the end");
        }
        return events;
    }

    private static void json() {
        String text = "{\"a\":[1,-2.5,true,false,null,{}],\"b\":\"\\\"\\\\ä\\u0000\\ud83d\\ude00\",\"c\":{\"d\":[]}}";
        same(text, Json.write(Json.object(text)));
        same("{\"k\":\"/\\u000a\"}", Json.write(Json.object(" { \"k\" :\n\"\\/\\n\" } ")));
        Message message = Message.read("{\"id\":\"msg_1\",\"notification\":{\"title\":\"Hi\"},\"data\":{\"k\":\"v\"}}");
        same("msg_1 Hi  {k=v}", message.id() + " " + message.title() + " " + message.body() + " " + message.data());
    }

    private static void noJson() {
        String deep = "[".repeat(100_000);
        for (String text : List.of("", "[]", "{", "{\"a\"}", "{\"a\":1,}", "{} x", "{\"a\":tru}", "{\"a\":\"\n\"}",
                "{\"a\":\"\\x\"}", "{\"a\":--1}", "{\"a\":" + deep)) {
            refused(() -> Json.object(text));
        }
        refused(() -> Message.read("{}"));
        for (String server : List.of("push.example.org", "ftp://push.example.org", "http:///")) {
            refused(() -> new Service(server, null));
        }
    }

    /** What is to be refused. */
    private interface Wrong {
        void run() throws Exception;
    }

    private static void refused(Wrong wrong) {
        try {
            wrong.run();
        } catch (IllegalArgumentException refusal) {
            return;
        } catch (Exception other) {
            throw new AssertionError(other);
        }
        throw new AssertionError("it is not refused");
    }

    private static void same(Object wanted, Object found) {
        check(wanted == null ? found == null : wanted.equals(found), found + " is not " + wanted);
    }

    private static void check(boolean holds, String otherwise) {
        if (!holds) {
            throw new AssertionError(otherwise);
        }
    }
}
