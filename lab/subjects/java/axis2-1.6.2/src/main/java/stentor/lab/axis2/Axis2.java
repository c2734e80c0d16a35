package stentor.lab.axis2;

import java.net.InetSocketAddress;
import java.util.Collections;
import java.util.Map;
import org.apache.axis2.Version;
import stentor.lab.Lsp;
import stentor.lab.Samples;

/** Axis2. Usage: Axis2 rest|soap; the server answers both. */
public final class Axis2 implements Lsp.Subject {
    private final boolean rest;

    private Axis2(boolean rest) {
        this.rest = rest;
    }

    public static void main(String[] words) throws Exception {
        Lsp.speak(new Axis2(words[0].equals("rest")));
    }

    @Override
    public Map<String, String> versions() {
        return Collections.singletonMap("axis2", Version.getVersionText());
    }

    @Override
    public int serve(String op, InetSocketAddress bind, Map<String, String> factors, Samples samples) throws Exception {
        return Service.serve(op, bind, factors, samples);
    }

    @Override
    public Lsp.Client call(String op, InetSocketAddress target, Map<String, String> factors) throws Exception {
        return Caller.call(rest, op, "http://" + target.getHostString() + ":" + target.getPort() + "/", factors);
    }
}
