package stentor.lab.plain;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.net.HttpURLConnection;
import org.kxml2.io.KXmlParser;
import org.kxml2.io.KXmlSerializer;
import org.xmlpull.v1.XmlPullParser;
import stentor.lab.Builder;
import stentor.lab.Content;
import stentor.lab.Events;

/**
 * SOAP 1.1 as ksoap2-android sends it: kXML2 for both ways, its prefixes, its headers, a line end behind the envelope.
 * Written anew from what such clients are seen to send; only a client.
 */
final class KsoapLike implements Codec {
    private static final String NAMESPACE = "urn:stentor:lab";
    private static final String ENVELOPE = "http://schemas.xmlsoap.org/soap/envelope/";
    private static final String ENCODING = "http://schemas.xmlsoap.org/soap/encoding/";
    private static final String SCHEMA = "http://www.w3.org/2001/XMLSchema";
    private static final String INSTANCE = SCHEMA + "-instance";

    @Override
    public String contentType() {
        return "text/xml;charset=utf-8";
    }

    /** Sets the headers that it sends beside the content type. */
    static void headers(HttpURLConnection connection, String op) {
        connection.setRequestProperty("User-Agent", "ksoap2-android/2.6.0+");
        connection.setRequestProperty("SOAPAction", NAMESPACE + "#" + op);
        connection.setRequestProperty("Accept-Encoding", "gzip");
    }

    @Override
    public byte[] writeRequest(String op, Content content) throws Exception {
        ByteArrayOutputStream out = new ByteArrayOutputStream(256 << 10);
        KXmlSerializer writer = new KXmlSerializer();
        writer.setOutput(out, "UTF-8");
        writer.setPrefix("i", INSTANCE);
        writer.setPrefix("d", SCHEMA);
        writer.setPrefix("c", ENCODING);
        writer.setPrefix("v", ENVELOPE);
        writer.startTag(ENVELOPE, "Envelope");
        writer.startTag(ENVELOPE, "Header").endTag(ENVELOPE, "Header");
        writer.startTag(ENVELOPE, "Body");
        writer.setPrefix("", NAMESPACE);
        writer.startTag(NAMESPACE, op).attribute(null, "id", "o0").attribute(ENCODING, "root", "1");
        content.tell(new Serializing(writer));
        writer.endTag(NAMESPACE, op);
        writer.endTag(ENVELOPE, "Body").endTag(ENVELOPE, "Envelope");
        writer.flush();
        out.write('\r');
        out.write('\n');
        return out.toByteArray();
    }

    /** Elements, with a type where there is text, as ksoap2 adds them. */
    private static final class Serializing implements Events {
        private final KXmlSerializer writer;
        private final java.util.ArrayDeque<String> names = new java.util.ArrayDeque<>();

        Serializing(KXmlSerializer writer) {
            this.writer = writer;
        }

        @Override
        public void start(String name) throws Exception {
            writer.startTag(NAMESPACE, name);
            names.push(name);
        }

        @Override
        public void text(String text) throws Exception {
            String name = names.peek();
            boolean whole = name.equals("n") || name.equals("id") && text.matches("-?[0-9]+");
            writer.attribute(INSTANCE, "type", whole ? "d:long" : name.equals("price") ? "d:double" : "d:string");
            writer.text(text);
        }

        @Override
        public void end() throws Exception {
            writer.endTag(NAMESPACE, names.pop());
        }
    }

    @Override
    public Content readAnswer(String op, byte[] bytes) throws Exception {
        KXmlParser parser = new KXmlParser();
        parser.setFeature(XmlPullParser.FEATURE_PROCESS_NAMESPACES, true);
        parser.setInput(new ByteArrayInputStream(bytes), "UTF-8");
        enter(parser, ENVELOPE, "Envelope");
        enter(parser, ENVELOPE, "Body");
        enter(parser, NAMESPACE, op + "Response");
        parser.nextTag();
        Builder builder = new Builder();
        int outside = parser.getDepth() - 1;
        for (int event = parser.getEventType(); parser.getDepth() > outside; event = parser.next()) {
            if (event == XmlPullParser.START_TAG) {
                builder.start(parser.getName());
            } else if (event == XmlPullParser.TEXT) {
                builder.text(parser.getText());
            } else {
                builder.end();
            }
        }
        return builder.content();
    }

    private static void enter(KXmlParser parser, String namespace, String name) throws Exception {
        parser.nextTag();
        parser.require(XmlPullParser.START_TAG, namespace, name);
    }

    @Override
    public Content readRequest(String op, byte[] bytes) {
        throw new UnsupportedOperationException("only a client");
    }

    @Override
    public byte[] writeAnswer(String op, Content content) {
        throw new UnsupportedOperationException("only a client");
    }
}
