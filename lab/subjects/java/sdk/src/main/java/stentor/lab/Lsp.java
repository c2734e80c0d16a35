package stentor.lab;

import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.LinkedHashMap;
import java.util.Map;

/** The subject's side of LSP-1 (docs/lab/your-own-service.md): takes orders on standard input and reports on standard output. */
public final class Lsp {
    /** What is measured. */
    public interface Subject {
        /** Gives versions of its software, by name. */
        Map<String, String> versions() throws Exception;

        /** Listens, and gives the port. */
        int serve(String op, InetSocketAddress bind, Map<String, String> factors, Samples samples) throws Exception;

        /** Gets ready to ask. */
        Client call(String op, InetSocketAddress target, Map<String, String> factors) throws Exception;
    }

    /** The asking half: an exchange after the other. */
    public interface Client {
        /** Asks; sets all times but the start. */
        Content exchange(Content request, Times times) throws Exception;
    }

    private final Subject subject;
    private final Samples samples = new Samples();
    private Client client;
    /** Null where no rows are kept. */
    private Rows rows;
    private Map<String, Object> prepare;
    private Map<String, Object> arm;

    private Lsp(Subject subject) {
        this.subject = subject;
    }

    /** Follows orders until told to stop, then ends the process. */
    public static void speak(Subject subject) throws Exception {
        PrintStream reports = System.out;
        System.setOut(System.err); // What a framework prints is no report.
        Lsp lsp = new Lsp(subject);
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = orders.readLine()) != null;) {
            Map<String, Object> report = lsp.follow(Json.read(line));
            if (report != null) {
                reports.println(Json.write(report));
                reports.flush();
                if (report.get("report").equals("done") && lsp.prepare == null) {
                    break;
                }
            }
        }
        Runtime.getRuntime().halt(0);
    }

    private Map<String, Object> follow(Map<String, Object> order) {
        try {
            switch ((String) order.get("order")) {
                case "hello":
                    Map<String, String> versions = new LinkedHashMap<>(subject.versions());
                    versions.put("java", System.getProperty("java.vm.version"));
                    return report("hello", "lsp", 1, "versions", versions, "clock", "CLOCK_MONOTONIC");
                case "prepare": return prepare(order);
                case "arm":
                    arm = order;
                    samples.clear();
                    return report("armed");
                case "go": return client == null ? null : go(((Number) order.get("t0_ns")).longValue());
                default: return stop();
            }
        } catch (Throwable error) { // A heap that is too small is an outcome to tell, not a reason to vanish.
            error.printStackTrace();
            return report("error", "text", String.valueOf(error));
        }
    }

    private Map<String, Object> prepare(Map<String, Object> order) throws Exception {
        prepare = order;
        String op = (String) order.get("op");
        if (order.get("role").equals("server")) {
            samples.repeat(Integer.parseInt(factors().getOrDefault("service", "1")));
            if (factors().containsKey("store")) {
                samples.answerFrom(new StoredPoints(factors(), ((Number) order.get("seed")).longValue()));
            }
            // An app server of a push service connects, and listens nowhere.
            Object place = order.get("bind") == null ? order.get("target") : order.get("bind");
            return report("ready", "port", subject.serve(op, address(place), factors(), samples));
        }
        client = subject.call(op, address(order.get("target")), factors());
        rows = op.equals("points") && factors().containsKey("insert") ? new Rows(factors()) : null;
        return report("ready", "port", 0);
    }

    private Map<String, Object> go(long begin) throws Exception {
        Map<?, ?> schedule = (Map<?, ?>) arm.get("schedule");
        long first = Math.max(begin, System.nanoTime());
        long count = ((Number) arm.get("count")).longValue();
        long errors = 0;
        Reference.Digest digest = new Reference.Digest();
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        ByteArrayOutputStream inserted = new ByteArrayOutputStream();
        long from = rows == null ? 0 : Math.min(rows.first(), count);
        for (long seq = from; seq < count; seq++) {
            boolean open = schedule.get("kind").equals("open");
            long intended = open ? first + (seq - from) * ((Number) schedule.get("interval_ns")).longValue()
                : Math.max(first, System.nanoTime());
            pause(intended - System.nanoTime());
            Times times = new Times();
            Content answer = exchange(seq, times);
            errors += times.status == 0 ? 0 : 1;
            if (times.status == 0) {
                digest.add(answer);
            }
            out.write(times.sample(seq, intended));
            inserted.write(times.inserted());
            pause(open ? 0 : ((Number) schedule.get("think_ns")).longValue());
        }
        Files.write(Paths.get((String) arm.get("out")), out.toByteArray());
        if (rows != null) {
            Files.write(Paths.get(arm.get("out") + ".inserted"), inserted.toByteArray());
        }
        return report("done", "n", count - from - errors, "errors", errors, "digest", digest.hex());
    }

    private Content exchange(long seq, Times times) {
        try {
            long seed = ((Number) prepare.get("seed")).longValue();
            Content request = Reference.request((String) prepare.get("op"), factors(), seed, seq);
            times.start = System.nanoTime();
            Content answer = client.exchange(request, times);
            if (rows != null) {
                rows.keep(seq, answer);
                times.inserted = System.nanoTime();
            }
            return answer;
        } catch (OutOfMemoryError error) {
            System.err.println(error);
            times.status = Times.OUT_OF_MEMORY;
        } catch (Exception error) {
            error.printStackTrace();
            times.status = Times.FAILED;
        }
        return null;
    }

    private Map<String, Object> stop() throws Exception {
        byte[] bytes = samples.take();
        if (arm != null && client == null) {
            Files.write(Paths.get((String) arm.get("out")), bytes);
        }
        prepare = null;
        return report("done", "n", bytes.length / Times.BYTES, "errors", 0, "digest", "");
    }

    @SuppressWarnings("unchecked")
    private Map<String, String> factors() {
        Object factors = prepare.get("factors");
        return factors == null ? new LinkedHashMap<>() : (Map<String, String>) factors;
    }

    private static InetSocketAddress address(Object text) {
        String address = text == null ? "127.0.0.1:0" : text.toString();
        int colon = address.lastIndexOf(':');
        String host = address.substring(0, colon).replaceAll("[\\[\\]]", "");
        return new InetSocketAddress(host, Integer.parseInt(address.substring(colon + 1)));
    }

    private static void pause(long nanoseconds) throws InterruptedException {
        if (nanoseconds > 0) {
            Thread.sleep(nanoseconds / 1_000_000, (int) (nanoseconds % 1_000_000));
        }
    }

    private static Map<String, Object> report(String name, Object... fields) {
        Map<String, Object> report = new LinkedHashMap<>();
        report.put("report", name);
        for (int at = 0; at < fields.length; at += 2) {
            report.put((String) fields[at], fields[at + 1]);
        }
        return report;
    }
}
