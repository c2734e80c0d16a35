package stentor.lab.plain;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import javax.xml.XMLConstants;
import javax.xml.parsers.DocumentBuilderFactory;
import javax.xml.parsers.SAXParserFactory;
import javax.xml.stream.XMLInputFactory;
import javax.xml.stream.XMLOutputFactory;
import javax.xml.stream.XMLStreamConstants;
import javax.xml.stream.XMLStreamReader;
import javax.xml.stream.XMLStreamWriter;
import org.xml.sax.Attributes;
import org.xml.sax.helpers.DefaultHandler;
import stentor.lab.Builder;
import stentor.lab.Content;
import stentor.lab.Events;

/** XML by the parsers of the JDK: SAX, DOM or StAX; always written by StAX. */
public final class JdkXml implements Codec.Same {
    private static final XMLOutputFactory WRITERS = XMLOutputFactory.newInstance();
    private static final XMLInputFactory READERS = XMLInputFactory.newInstance();
    private static final SAXParserFactory SAX = SAXParserFactory.newInstance();
    private static final DocumentBuilderFactory DOM = DocumentBuilderFactory.newInstance();

    static {
        READERS.setProperty(XMLInputFactory.SUPPORT_DTD, false);
        try {
            SAX.setFeature(XMLConstants.FEATURE_SECURE_PROCESSING, true);
            DOM.setFeature(XMLConstants.FEATURE_SECURE_PROCESSING, true);
        } catch (Exception error) {
            throw new ExceptionInInitializerError(error);
        }
    }

    /** Which parser. */
    public enum Parser { SAX, DOM, STAX }

    private final Parser parser;

    public JdkXml(Parser parser) {
        this.parser = parser;
    }

    @Override
    public String contentType() {
        return "application/xml";
    }

    @Override
    public byte[] write(Content content) throws Exception {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        XMLStreamWriter writer = WRITERS.createXMLStreamWriter(out, "UTF-8");
        writer.writeStartDocument("UTF-8", "1.0");
        content.tell(new Events() {
            @Override
            public void start(String name) throws Exception {
                writer.writeStartElement(name);
            }

            @Override
            public void text(String text) throws Exception {
                writer.writeCharacters(text);
            }

            @Override
            public void end() throws Exception {
                writer.writeEndElement();
            }
        });
        writer.close();
        return out.toByteArray();
    }

    @Override
    public Content read(byte[] bytes) throws Exception {
        Builder builder = new Builder();
        InputStream in = new ByteArrayInputStream(bytes);
        switch (parser) {
            case SAX: SAX.newSAXParser().parse(in, new Handler(builder)); break;
            case DOM: builder.walk(DOM.newDocumentBuilder().parse(in).getDocumentElement()); break;
            default: pull(in, builder);
        }
        return builder.content();
    }

    private static final class Handler extends DefaultHandler {
        private final Builder builder;

        Handler(Builder builder) {
            this.builder = builder;
        }

        @Override
        public void startElement(String namespace, String local, String name, Attributes attributes) {
            builder.start(name);
        }

        @Override
        public void characters(char[] letters, int from, int count) {
            builder.text(letters, from, count);
        }

        @Override
        public void endElement(String namespace, String local, String name) {
            builder.end();
        }
    }

    private static void pull(InputStream in, Builder builder) throws Exception {
        XMLStreamReader reader = READERS.createXMLStreamReader(in);
        while (reader.hasNext()) {
            switch (reader.next()) {
                case XMLStreamConstants.START_ELEMENT: builder.start(reader.getLocalName()); break;
                case XMLStreamConstants.CHARACTERS: case XMLStreamConstants.CDATA:
                    builder.text(reader.getTextCharacters(), reader.getTextStart(), reader.getTextLength());
                    break;
                case XMLStreamConstants.END_ELEMENT: builder.end(); break;
                default:
            }
        }
    }
}
