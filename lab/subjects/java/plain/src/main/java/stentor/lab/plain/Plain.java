package stentor.lab.plain;

import java.net.InetSocketAddress;
import java.util.Map;
import stentor.lab.Lsp;
import stentor.lab.Samples;

/** Subjects of the JDK and small libraries. Usage: Plain CODEC http|socket, CODEC one of json, sax, dom, stax, protobuf, ksoap. */
public final class Plain {
    private Plain() {}

    public static void main(String[] words) throws Exception {
        speak(codec(words[0]), words[1].equals("http"));
    }

    /** Follows orders as a subject with this codec, over HTTP or over sockets. */
    public static void speak(Codec codec, boolean http) throws Exception {
        Lsp.speak(new Lsp.Subject() {
            @Override
            public Map<String, String> versions() {
                return Map.of();
            }

            @Override
            public int serve(String op, InetSocketAddress bind, Map<String, String> factors, Samples samples)
                    throws Exception {
                return http ? Http.serve(codec, op, bind, factors, samples)
                    : Sockets.serve(codec, op, bind, factors, samples);
            }

            @Override
            public Lsp.Client call(String op, InetSocketAddress target, Map<String, String> factors)
                    throws Exception {
                return http ? Http.call(codec, op, target, factors) : Sockets.call(codec, op, target, factors);
            }
        });
    }

    /** Gives a codec by its name. */
    public static Codec codec(String name) {
        switch (name) {
            case "json": return new JsonCodec();
            case "protobuf": return new ProtobufJava();
            case "ksoap": return new KsoapLike();
            default: return new JdkXml(JdkXml.Parser.valueOf(name.toUpperCase()));
        }
    }
}
