package stentor.lab;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;

/** What is asked and what is answered, made from a seed by the rules of docs/lab/your-own-service.md. */
public final class Reference {
    /** What echo is with the factor reply = number: the payload's length comes back. */
    public static final String COUNT = "count";
    private static final int[] FIELD_LETTERS = {6, 24, 12, 334, 32, 16, 12, 10, 10, 40, 16, 40, 48};
    private static final int DESCRIPTION = 3;
    private static final int TEXT_LETTERS = 10;
    private static final int ENTRIES_MAX = 100_000;

    private long state;

    private Reference(long seed) {
        state = seed & 0x7fffffffL;
    }

    /** Makes the request number seq of a run; pages of points follow each other, and begin anew after the last. */
    public static Content request(String op, Map<String, String> factors, long base, long seq) {
        long page = page(factors);
        if (!op.equals("points") || page == 0) {
            return request(op, factors, base + seq);
        }
        long from = seq % pages(factors) * page;
        return Content.ofPayload("Point " + Math.min(page, level(factors, "poi", 3) - from) + " " + base + " " + from);
    }

    /** Gives the points that are asked for at a time; 0 is all. */
    static long page(Map<String, String> factors) {
        return level(factors, "page", 0);
    }

    /** Counts the exchanges that bring all points. */
    static long pages(Map<String, String> factors) {
        long page = page(factors);
        return page == 0 ? 1 : Math.max((level(factors, "poi", 3) + page - 1) / page, 1);
    }

    private static Content request(String op, Map<String, String> factors, long seed) {
        switch (op) {
            case "echo": return Content.ofPayload(new Reference(seed).letters(level(factors, "payload", 64)));
            case "sort": return Content.ofNumbers(new Reference(seed).numbers(level(factors, "items", 20)));
            case "array":
                String type = factors.containsKey("type") ? factors.get("type") : "Int";
                return Content.ofPayload(type + " " + level(factors, "items", 20) + " " + seed);
            default: return Content.ofPayload("Point " + level(factors, "poi", 3) + " " + seed);
        }
    }

    /** Does what a server has to do; a request that makes no sense is an IllegalArgumentException. */
    public static Content answer(String op, Content request) {
        if (op.equals(COUNT)) {
            return Content.ofNumbers(Collections.singletonList((long) request.payload.length()));
        } else if (op.equals("echo")) {
            return request;
        }
        if (op.equals("sort") && request.numbers != null) {
            List<Long> sorted = new ArrayList<>(request.numbers);
            Collections.sort(sorted);
            return Content.ofNumbers(sorted);
        }
        if (op.equals("sort") || request.payload == null) {
            throw new IllegalArgumentException(op + " cannot be asked for that");
        }
        return made(request.payload.split(" "));
    }

    /** Makes all points of a cell; the factor letters changes the length of their descriptions. */
    static List<String[]> points(Map<String, String> factors, long seed) {
        int[] letters = FIELD_LETTERS.clone();
        int usual = java.util.Arrays.stream(letters).sum();
        letters[DESCRIPTION] = Math.max(letters[DESCRIPTION] + level(factors, "letters", usual) - usual, 1);
        Reference source = new Reference(seed);
        List<String[]> points = new ArrayList<>();
        for (int left = level(factors, "poi", 3); left > 0; left--) {
            points.add(source.point(letters));
        }
        return points;
    }

    private static Content made(String[] wish) {
        int count = Integer.parseInt(wish[1]);
        if (wish.length != 3 || count > ENTRIES_MAX) {
            throw new IllegalArgumentException("TYPE COUNT SEED is wanted, at most " + ENTRIES_MAX + " entries");
        }
        Reference source = new Reference(Long.parseLong(wish[2]));
        if (wish[0].equals("Int")) {
            return Content.ofNumbers(source.numbers(count));
        }
        Content content = Content.of(wish[0].equals("String") ? "texts" : wish[0].equals("Object") ? "objects"
            : wish[0].equals("Point") ? "points" : wish[0]);
        for (int at = 0; at < count; at++) {
            if (content.texts != null) {
                content.texts.add(source.letters(TEXT_LETTERS));
            } else if (content.objects != null) {
                long id = source.number();
                String name = source.letters(TEXT_LETTERS);
                content.objects.add(new Content.Item(id, name, source.number() / 4.0));
            } else {
                content.points.add(source.point(FIELD_LETTERS));
            }
        }
        return content;
    }

    private static int level(Map<String, String> factors, String name, int otherwise) {
        String level = factors.get(name);
        return Math.min(level == null ? otherwise : Integer.parseInt(level), ENTRIES_MAX);
    }

    private long number() {
        state = (state * 1103515245L + 12345L) & 0x7fffffffL;
        return state >> 16;
    }

    private List<Long> numbers(int count) {
        List<Long> numbers = new ArrayList<>(count);
        for (int at = 0; at < count; at++) {
            numbers.add(number());
        }
        return numbers;
    }

    private String letters(int count) {
        StringBuilder letters = new StringBuilder(count);
        for (int at = 0; at < count; at++) {
            letters.append((char) ('a' + number() % 26));
        }
        return letters.toString();
    }

    private String[] point(int[] letters) {
        String[] point = new String[letters.length];
        for (int at = 0; at < point.length; at++) {
            point[at] = letters(letters[at]);
        }
        return point;
    }

    /** FNV-1a of 64 bits over the fields of all answers. */
    public static final class Digest {
        private long state = 0xcbf29ce484222325L;

        public void add(Content content) {
            if (content.payload != null) {
                field(content.payload);
            } else if (content.numbers != null) {
                content.numbers.forEach(number -> field(number.toString()));
            } else if (content.texts != null) {
                content.texts.forEach(this::field);
            } else if (content.objects != null) {
                content.objects.forEach(item -> {
                    field(Long.toString(item.id));
                    field(item.name);
                    field(Long.toString(Math.round(item.price * 4)));
                });
            } else {
                content.points.forEach(point -> {
                    for (String field : point) {
                        field(field);
                    }
                });
            }
        }

        private void field(String text) {
            byte[] bytes = text.getBytes(java.nio.charset.StandardCharsets.UTF_8);
            for (byte one : bytes) {
                state = (state ^ (one & 0xff)) * 0x100000001b3L;
            }
            state = (state ^ '\n') * 0x100000001b3L;
        }

        public String hex() {
            return String.format("%016x", state);
        }
    }
}
