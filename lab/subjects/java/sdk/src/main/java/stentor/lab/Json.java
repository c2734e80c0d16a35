package stentor.lab;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** JSON for orders and reports, so that no subject needs a library for them (and none that it measures is in the way). */
public final class Json {
    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    /** Reads an object: maps, lists, texts, numbers (Long or Double), Boolean, null. */
    @SuppressWarnings("unchecked")
    public static Map<String, Object> read(String text) {
        return (Map<String, Object>) new Json(text).value();
    }

    /** Writes maps, texts, numbers. */
    public static String write(Object value) {
        if (!(value instanceof Map)) {
            return value instanceof Number || value instanceof Boolean ? value.toString() : quoted(String.valueOf(value));
        }
        List<String> fields = new ArrayList<>();
        ((Map<?, ?>) value).forEach((name, field) -> fields.add(quoted(name.toString()) + ":" + write(field)));
        return "{" + String.join(",", fields) + "}";
    }

    private static String quoted(String text) {
        StringBuilder quoted = new StringBuilder("\"");
        for (char letter : text.toCharArray()) {
            if (letter == '"' || letter == '\\') {
                quoted.append('\\').append(letter);
            } else if (letter < ' ') {
                quoted.append(String.format("\\u%04x", (int) letter));
            } else {
                quoted.append(letter);
            }
        }
        return quoted.append('"').toString();
    }

    private char next() {
        while (Character.isWhitespace(text.charAt(at))) {
            at++;
        }
        return text.charAt(at);
    }

    private Object value() {
        char first = next();
        if (first == '{') {
            Map<String, Object> map = new LinkedHashMap<>();
            while (inside('}')) {
                String name = (String) value();
                next();
                at++;
                map.put(name, value());
            }
            return map;
        }
        if (first == '[') {
            List<Object> list = new ArrayList<>();
            while (inside(']')) {
                list.add(value());
            }
            return list;
        }
        return first == '"' ? string() : word();
    }

    /** Steps over the bracket or comma in front of a value; false at the end. */
    private boolean inside(char end) {
        if (next() != end) {
            at++;
        }
        if (next() == end) {
            at++;
            return false;
        }
        return true;
    }

    private String string() {
        StringBuilder string = new StringBuilder();
        for (at++; text.charAt(at) != '"'; at++) {
            char letter = text.charAt(at);
            if (letter == '\\') {
                letter = text.charAt(++at);
                if (letter == 'u') {
                    letter = (char) Integer.parseInt(text.substring(at + 1, at + 5), 16);
                    at += 4;
                } else {
                    letter = "bfnrt".indexOf(letter) < 0 ? letter : "\b\f\n\r\t".charAt("bfnrt".indexOf(letter));
                }
            }
            string.append(letter);
        }
        at++;
        return string.toString();
    }

    private Object word() {
        int from = at;
        while (at < text.length() && ",]} \t\r\n".indexOf(text.charAt(at)) < 0) {
            at++;
        }
        String word = text.substring(from, at);
        switch (word) {
            case "true": case "false": return Boolean.valueOf(word);
            case "null": return null;
            default: return word.matches("-?[0-9]+") ? (Object) Long.valueOf(word) : Double.valueOf(word);
        }
    }
}
