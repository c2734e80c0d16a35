package stentor.lab;

import java.util.ArrayList;
import java.util.List;
import org.w3c.dom.Node;

/** Makes content of the events of its XML form; names that are not expected are refused. */
public final class Builder implements Events {
    private static final String[] OBJECT = {"id", "name", "price"};
    private final StringBuilder text = new StringBuilder();
    private final List<String> fields = new ArrayList<>();
    private Content content;
    private String kind;
    private int depth;

    @Override
    public void start(String name) {
        depth++;
        text.setLength(0);
        if (depth == 1) {
            content = Content.of(name);
            kind = name;
        } else if (depth == 2) {
            expect(name, kind.equals("numbers") ? "n" : kind.equals("texts") ? "t"
                : kind.equals("objects") ? "object" : kind.equals("points") ? "point" : "");
            fields.clear();
        } else {
            String[] names = kind.equals("objects") ? OBJECT : kind.equals("points") ? Content.FIELDS : new String[0];
            expect(name, depth == 3 && fields.size() < names.length ? names[fields.size()] : "");
        }
    }

    @Override
    public void text(String more) {
        text.append(more);
    }

    /** Takes a tree, whoever's it is, as the events it stands for. */
    public void walk(Node node) {
        start(node.getNodeName());
        for (Node child = node.getFirstChild(); child != null; child = child.getNextSibling()) {
            if (child.getNodeType() == Node.ELEMENT_NODE) {
                walk(child);
            } else {
                text(child.getNodeValue());
            }
        }
        end();
    }

    /** Takes text as SAX has it. */
    public void text(char[] letters, int from, int count) {
        text.append(letters, from, count);
    }

    @Override
    public void end() {
        if (depth == 1 && content.payload != null) {
            content.payload = text.toString();
        } else if (depth == 2) {
            entry();
        } else if (depth == 3) {
            fields.add(text.toString());
        }
        text.setLength(0);
        depth--;
    }

    /** Gives what was built. */
    public Content content() {
        if (content == null || depth != 0) {
            throw new IllegalArgumentException("the document ends early");
        }
        return content;
    }

    private void entry() {
        switch (kind) {
            case "numbers": content.numbers.add(Long.valueOf(text.toString().trim())); break;
            case "texts": content.texts.add(text.toString()); break;
            case "objects":
                need(OBJECT.length);
                content.objects.add(new Content.Item(Long.parseLong(fields.get(0).trim()), fields.get(1),
                    Double.parseDouble(fields.get(2).trim())));
                break;
            default:
                need(Content.FIELDS.length);
                content.points.add(fields.toArray(new String[0]));
        }
    }

    private void need(int count) {
        if (fields.size() != count) {
            throw new IllegalArgumentException("fields are missing");
        }
    }

    private static void expect(String name, String expected) {
        if (!name.equals(expected)) {
            throw new IllegalArgumentException("<" + name + "> where <" + expected + "> was expected");
        }
    }
}
