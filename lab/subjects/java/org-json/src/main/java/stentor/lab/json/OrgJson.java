package stentor.lab.json;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.json.JSONArray;
import org.json.JSONObject;
import stentor.lab.Content;

/** JSON by org.json. */
public class OrgJson {
    public String contentType() {
        return "application/json";
    }

    public byte[] write(Content content) {
        JSONObject object = new JSONObject();
        if (content.payload != null) {
            object.put("payload", content.payload);
        } else {
            object.put(content.kind(), entries(content));
        }
        return object.toString().getBytes(StandardCharsets.UTF_8);
    }

    private static JSONArray entries(Content content) {
        JSONArray entries = new JSONArray();
        if (content.numbers != null) {
            content.numbers.forEach(number -> entries.put(number.longValue()));
        } else if (content.texts != null) {
            content.texts.forEach(entries::put);
        } else if (content.objects != null) {
            content.objects.forEach(item -> entries.put(
                new JSONObject().put("id", item.id).put("name", item.name).put("price", item.price)));
        } else {
            for (String[] point : content.points) {
                JSONObject object = new JSONObject();
                for (int at = 0; at < point.length; at++) {
                    object.put(Content.FIELDS[at], point[at]);
                }
                entries.put(object);
            }
        }
        return entries;
    }

    public Content read(byte[] bytes) {
        JSONObject object = new JSONObject(new String(bytes, StandardCharsets.UTF_8));
        String kind = object.keys().next();
        if (kind.equals("payload")) {
            return Content.ofPayload(object.getString(kind));
        }
        Content content = Content.of(kind);
        JSONArray entries = object.getJSONArray(kind);
        for (int at = 0; at < entries.length(); at++) {
            if (content.numbers != null) {
                content.numbers.add(entries.getLong(at));
            } else if (content.texts != null) {
                content.texts.add(entries.getString(at));
            } else if (content.objects != null) {
                JSONObject item = entries.getJSONObject(at);
                content.objects.add(
                    new Content.Item(item.getLong("id"), item.getString("name"), item.getDouble("price")));
            } else {
                content.points.add(point(entries.getJSONObject(at)));
            }
        }
        return content;
    }

    private static String[] point(JSONObject object) {
        List<String> fields = new ArrayList<>();
        for (String name : Content.FIELDS) {
            fields.add(object.getString(name));
        }
        return fields.toArray(new String[0]);
    }
}
