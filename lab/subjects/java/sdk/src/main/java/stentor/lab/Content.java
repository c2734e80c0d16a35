package stentor.lab;

import java.util.ArrayList;
import java.util.List;

/** What an exchange carries: a payload, numbers, texts, objects or points of interest; all other fields are null. */
public final class Content {
    /** Fields of a point of interest, in order. */
    public static final String[] FIELDS = {"id", "name", "category", "description", "address", "city", "country",
        "latitude", "longitude", "hours", "phone", "website", "picture"};

    public String payload;
    public List<Long> numbers;
    public List<String> texts;
    public List<Item> objects;
    /** Each with the fields in order. */
    public List<String[]> points;

    /** A small object. */
    public static final class Item {
        public final long id;
        public final String name;
        public final double price;

        public Item(long id, String name, double price) {
            this.id = id;
            this.name = name;
            this.price = price;
        }
    }

    public static Content ofPayload(String payload) {
        Content content = new Content();
        content.payload = payload;
        return content;
    }

    public static Content ofNumbers(List<Long> numbers) {
        Content content = new Content();
        content.numbers = numbers;
        return content;
    }

    /** Makes content without entries of a kind: payload, numbers, texts, objects, points. */
    public static Content of(String kind) {
        Content content = new Content();
        switch (kind) {
            case "payload": content.payload = ""; break;
            case "numbers": content.numbers = new ArrayList<>(); break;
            case "texts": content.texts = new ArrayList<>(); break;
            case "objects": content.objects = new ArrayList<>(); break;
            case "points": content.points = new ArrayList<>(); break;
            default: throw new IllegalArgumentException(kind + " is no kind of content");
        }
        return content;
    }

    public String kind() {
        return payload != null ? "payload" : numbers != null ? "numbers" : texts != null ? "texts"
            : objects != null ? "objects" : "points";
    }

    /** Tells the XML form. */
    public void tell(Events events) throws Exception {
        events.start(kind());
        if (payload != null) {
            events.text(payload);
        } else if (numbers != null) {
            for (Long number : numbers) {
                leaf(events, "n", number.toString());
            }
        } else if (texts != null) {
            for (String text : texts) {
                leaf(events, "t", text);
            }
        } else if (objects != null) {
            for (Item item : objects) {
                events.start("object");
                leaf(events, "id", Long.toString(item.id));
                leaf(events, "name", item.name);
                leaf(events, "price", Double.toString(item.price));
                events.end();
            }
        } else {
            for (String[] point : points) {
                events.start("point");
                for (int at = 0; at < FIELDS.length; at++) {
                    leaf(events, FIELDS[at], point[at]);
                }
                events.end();
            }
        }
        events.end();
    }

    private static void leaf(Events events, String name, String text) throws Exception {
        events.start(name);
        events.text(text);
        events.end();
    }
}
