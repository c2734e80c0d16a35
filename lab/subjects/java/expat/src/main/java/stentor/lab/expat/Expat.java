package stentor.lab.expat;

import java.nio.charset.StandardCharsets;
import stentor.lab.Builder;
import stentor.lab.Content;
import stentor.lab.plain.Codec;
import stentor.lab.plain.JdkXml;
import stentor.lab.plain.Plain;

/** XML read by libexpat, which calls Java for each event; written by StAX. */
public final class Expat implements Codec.Same {
    static {
        System.loadLibrary("labexpat");
    }

    private final JdkXml writing = new JdkXml(JdkXml.Parser.SAX);

    public static void main(String[] words) throws Exception {
        Plain.speak(new Expat(), true);
    }

    @Override
    public String contentType() {
        return writing.contentType();
    }

    @Override
    public byte[] write(Content content) throws Exception {
        return writing.write(content);
    }

    @Override
    public Content read(byte[] bytes) {
        Events events = new Events();
        String problem = parse(bytes, events);
        if (problem != null) {
            throw new IllegalArgumentException(problem);
        }
        return events.builder.content();
    }

    /** Parses a document; gives what is wrong with it, or null. */
    private static native String parse(byte[] document, Events events);

    /** Called by the parser. */
    private static final class Events {
        private final Builder builder = new Builder();

        void start(String name) {
            builder.start(name);
        }

        void text(byte[] utf8) {
            builder.text(new String(utf8, StandardCharsets.UTF_8));
        }

        void end() {
            builder.end();
        }
    }
}
