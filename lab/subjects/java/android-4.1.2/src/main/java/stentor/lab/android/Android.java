package stentor.lab.android;

import java.io.ByteArrayInputStream;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.HttpURLConnection;
import java.net.InetSocketAddress;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.Map;
import org.apache.harmony.xml.parsers.DocumentBuilderFactoryImpl;
import org.json.JSONArray;
import org.json.JSONObject;
import org.kxml2.io.KXmlParser;
import org.xmlpull.v1.XmlPullParser;
import stentor.lab.Builder;
import stentor.lab.Content;
import stentor.lab.Lsp;
import stentor.lab.Samples;
import stentor.lab.Times;
import stentor.lab.Tls;

/** A client that reads points of interest with the parsers of Android 4.1.2. Usage: Android dom|pull|json */
public final class Android implements Lsp.Subject {
    private final String parser;

    private Android(String parser) {
        this.parser = parser;
    }

    public static void main(String[] words) throws Exception {
        Lsp.speak(new Android(words[0]));
    }

    @Override
    public Map<String, String> versions() {
        return Collections.singletonMap("android", "4.1.2");
    }

    @Override
    public int serve(String op, InetSocketAddress bind, Map<String, String> factors, Samples samples) {
        throw new UnsupportedOperationException("only a client");
    }

    /** Asks; the factor reading = stream parses while the answer arrives, otherwise the whole answer is there before. */
    @Override
    public Lsp.Client call(String op, InetSocketAddress target, Map<String, String> factors) throws Exception {
        final Tls tls = Tls.client(factors);
        final URL url = new URL(tls == null ? "http" : "https", target.getHostString(), target.getPort(), "/" + op);
        final boolean streaming = "stream".equals(factors.get("reading"));
        return (request, times) -> {
            byte[] body = write(request.payload).getBytes(StandardCharsets.UTF_8);
            times.serialized();
            HttpURLConnection connection = (HttpURLConnection) url.openConnection();
            if (tls != null) {
                tls.secure(connection);
            }
            boolean read = false;
            try {
                Content content = exchange(connection, body, streaming, times);
                read = true;
                return content;
            } finally {
                if (!read) { // What is left of the answer must not be taken for the next.
                    connection.disconnect();
                }
            }
        };
    }

    private Content exchange(HttpURLConnection connection, byte[] body, boolean streaming, Times times)
            throws Exception {
        connection.setDoOutput(true);
        connection.setRequestProperty("Content-Type", parser.equals("json") ? "application/json" : "application/xml");
        connection.setFixedLengthStreamingMode(body.length);
        try (OutputStream out = connection.getOutputStream()) {
            out.write(body);
        }
        try (InputStream in = connection.getInputStream()) {
            Content content = read(streaming ? times.watch(in)
                : new ByteArrayInputStream(times.whole(in, connection.getContentLength())));
            times.deserialized();
            return content;
        }
    }

    /** Writes the wish; its letters need no escapes. */
    private String write(String wish) {
        return parser.equals("json") ? "{\"payload\":\"" + wish + "\"}" : "<payload>" + wish + "</payload>";
    }

    private Content read(InputStream in) throws Exception {
        if (parser.equals("json")) {
            return json(in);
        }
        Builder builder = new Builder();
        if (parser.equals("dom")) {
            builder.walk(new DocumentBuilderFactoryImpl().newDocumentBuilder().parse(in).getDocumentElement());
        } else {
            pull(in, builder);
        }
        return builder.content();
    }

    private static void pull(InputStream in, Builder builder) throws Exception {
        KXmlParser parser = new KXmlParser();
        parser.setFeature(XmlPullParser.FEATURE_PROCESS_NAMESPACES, true);
        parser.setInput(in, "UTF-8");
        for (int event = parser.next(); event != XmlPullParser.END_DOCUMENT; event = parser.next()) {
            if (event == XmlPullParser.START_TAG) {
                builder.start(parser.getName());
            } else if (event == XmlPullParser.TEXT) {
                builder.text(parser.getText());
            } else if (event == XmlPullParser.END_TAG) {
                builder.end();
            }
        }
    }

    /** Reads JSON: org.json of that time takes a text, so that all of it is in memory first. */
    private static Content json(InputStream in) throws Exception {
        StringBuilder text = new StringBuilder();
        java.io.Reader reader = new java.io.InputStreamReader(in, StandardCharsets.UTF_8);
        char[] letters = new char[8192];
        for (int count; (count = reader.read(letters)) >= 0;) {
            text.append(letters, 0, count);
        }
        JSONArray points = new JSONObject(text.toString()).getJSONArray("points");
        Content content = Content.of("points");
        for (int at = 0; at < points.length(); at++) {
            JSONObject point = points.getJSONObject(at);
            String[] fields = new String[Content.FIELDS.length];
            for (int field = 0; field < fields.length; field++) {
                fields[field] = point.getString(Content.FIELDS[field]);
            }
            content.points.add(fields);
        }
        return content;
    }
}
