package stentor.device;

import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** JSON (RFC 8259), as much of it as a device needs: objects are maps, numbers without a fraction are longs. */
final class Json {
    /** Deeper documents are refused: each level costs a frame of the stack. */
    private static final int DEPTH_MAX_COUNT = 64;

    private final String text;
    private int at;
    private int depth;

    private Json(String text) {
        this.text = text;
    }

    /** Returns the object that a text is. Throws IllegalArgumentException for anything else. */
    static Map<String, Object> object(String text) {
        Json json = new Json(text);
        Object value = json.value();
        json.space();
        if (json.at != text.length() || !(value instanceof Map)) {
            throw json.wrong("an object");
        }
        return members(value);
    }

    /** Returns the members of an object, none of anything else. */
    @SuppressWarnings("unchecked")
    static Map<String, Object> members(Object value) {
        return value instanceof Map ? Collections.unmodifiableMap((Map<String, Object>) value) : Map.of();
    }

    /** Writes maps, lists, texts, numbers, booleans and null. */
    static String write(Object value) {
        StringBuilder out = new StringBuilder();
        write(value, out);
        return out.toString();
    }

    private static void write(Object value, StringBuilder out) {
        if (value instanceof Map) {
            String comma = "{";
            for (Map.Entry<?, ?> one : ((Map<?, ?>) value).entrySet()) {
                out.append(comma);
                writeText(String.valueOf(one.getKey()), out);
                write(one.getValue(), out.append(':'));
                comma = ",";
            }
            out.append(comma.equals("{") ? "{}" : "}");
        } else if (value instanceof Iterable) {
            String comma = "[";
            for (Object one : (Iterable<?>) value) {
                write(one, out.append(comma));
                comma = ",";
            }
            out.append(comma.equals("[") ? "[]" : "]");
        } else if (value == null || value instanceof Boolean || value instanceof Number) {
            out.append(value);
        } else {
            writeText(value.toString(), out);
        }
    }

    private static void writeText(String text, StringBuilder out) {
        out.append('"');
        for (int index = 0; index < text.length(); index++) {
            char letter = text.charAt(index);
            if (letter == '"' || letter == '\\') {
                out.append('\\').append(letter);
            } else if (letter < ' ' || Character.isSurrogate(letter)) {
                // A surrogate that is alone is no letter of UTF-8.
                out.append(String.format("\\u%04x", (int) letter));
            } else {
                out.append(letter);
            }
        }
        out.append('"');
    }

    private Object value() {
        space();
        switch (at < text.length() ? text.charAt(at) : ' ') {
            case '{':
                return readObject();
            case '[':
                return readList();
            case '"':
                return readText();
            case 't':
                return word("true", Boolean.TRUE);
            case 'f':
                return word("false", Boolean.FALSE);
            case 'n':
                return word("null", null);
            default:
                return readNumber();
        }
    }

    private Map<String, Object> readObject() {
        Map<String, Object> members = new LinkedHashMap<>();
        enter();
        while (!ends('}', members.isEmpty())) {
            space();
            String name = readText();
            space();
            expect(':');
            members.put(name, value());
        }
        return members;
    }

    private List<Object> readList() {
        List<Object> items = new ArrayList<>();
        enter();
        while (!ends(']', items.isEmpty())) {
            items.add(value());
        }
        return items;
    }

    private void enter() {
        at++;
        if (++depth > DEPTH_MAX_COUNT) {
            throw wrong("fewer levels");
        }
    }

    /** Passes the end of a list or an object, or the comma before what follows. */
    private boolean ends(char end, boolean isFirst) {
        space();
        if (at < text.length() && text.charAt(at) == end) {
            at++;
            depth--;
            return true;
        }
        if (!isFirst) {
            expect(',');
        }
        return false;
    }

    private String readText() {
        expect('"');
        StringBuilder read = new StringBuilder();
        while (at < text.length() && text.charAt(at) != '"') {
            char letter = text.charAt(at++);
            if (letter < ' ') {
                throw wrong("no line break in a text");
            }
            read.append(letter == '\\' ? escaped() : letter);
        }
        expect('"');
        return read.toString();
    }

    private char escaped() {
        char letter = at < text.length() ? text.charAt(at++) : ' ';
        int plain = "\"\\/bfnrt".indexOf(letter);
        if (plain >= 0) {
            return "\"\\/\b\f\n\r\t".charAt(plain);
        }
        if (letter != 'u' || at + 4 > text.length()) {
            throw wrong("an escape");
        }
        at += 4;
        return (char) Integer.parseInt(text.substring(at - 4, at), 16);
    }

    private Object readNumber() {
        int start = at;
        while (at < text.length() && "+-.eE0123456789".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
        String number = text.substring(start, at);
        try {
            return Long.valueOf(number);
        } catch (NumberFormatException notWhole) {
            return Double.valueOf(number);
        }
    }

    private Object word(String word, Object value) {
        if (!text.startsWith(word, at)) {
            throw wrong(word);
        }
        at += word.length();
        return value;
    }

    private void space() {
        while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
    }

    private void expect(char letter) {
        if (at >= text.length() || text.charAt(at) != letter) {
            throw wrong("`" + letter + "`");
        }
        at++;
    }

    private IllegalArgumentException wrong(String wanted) {
        return new IllegalArgumentException("not JSON: " + wanted + " is missing at letter " + at);
    }
}
