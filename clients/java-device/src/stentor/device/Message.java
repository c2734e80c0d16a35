package stentor.device;

import java.util.Map;

/** What the app has sent. A notification is for people, data is for the program; a message may have both. */
public final class Message {
    private final Map<String, Object> whole;
    private final String json;

    private Message(Map<String, Object> whole, String json) {
        this.whole = whole;
        this.json = json;
    }

    static Message read(String json) {
        Map<String, Object> whole = Json.object(json);
        if (!(whole.get("id") instanceof String)) {
            throw new IllegalArgumentException("a message has no id");
        }
        return new Message(whole, json);
    }

    /** Returns its name, the same each time the message comes. */
    public String id() {
        return (String) whole.get("id");
    }

    /** Returns what is for people, empty where nothing is. */
    public Map<String, Object> notification() {
        return Json.members(whole.get("notification"));
    }

    /** Returns what is for the program, empty where nothing is. */
    public Map<String, Object> data() {
        return Json.members(whole.get("data"));
    }

    /** Returns the notification's title, or nothing. */
    public String title() {
        return text("title");
    }

    /** Returns the notification's text, or nothing. */
    public String body() {
        return text("body");
    }

    /** Returns everything that came, with `collapse_key`, `priority` and `sent_at` where they are. */
    public Map<String, Object> whole() {
        return whole;
    }

    /** Returns everything that came, as it came: one line of JSON. */
    public String json() {
        return json;
    }

    private String text(String name) {
        Object text = notification().get(name);
        return text instanceof String ? (String) text : "";
    }
}
