package stentor.lab.tomcat;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import javax.servlet.http.HttpServlet;
import javax.servlet.http.HttpServletRequest;
import javax.servlet.http.HttpServletResponse;
import org.apache.catalina.Context;
import org.apache.catalina.connector.Connector;
import org.apache.catalina.startup.Tomcat;
import org.apache.catalina.util.ServerInfo;
import stentor.lab.Lsp;
import stentor.lab.Samples;
import stentor.lab.plain.Codec;
import stentor.lab.plain.Plain;

/** A server in a servlet of Tomcat 7. Usage: Tomcat7 CODEC, which Plain names. */
public final class Tomcat7 implements Lsp.Subject {
    private static final String SERVLET = "lab";
    /** For files that Tomcat writes; subjects run in the folder of their definitions. */
    private static final Path FOLDER = Path.of("tomcat-7.0.29", "target", "base");
    private final Codec codec;

    private Tomcat7(Codec codec) {
        this.codec = codec;
    }

    public static void main(String[] words) throws Exception {
        Lsp.speak(new Tomcat7(Plain.codec(words[0])));
    }

    @Override
    public Map<String, String> versions() {
        return Map.of("tomcat", ServerInfo.getServerNumber());
    }

    @Override
    public int serve(String op, InetSocketAddress bind, Map<String, String> factors, Samples samples) throws Exception {
        Path folder = Files.createDirectories(FOLDER.toAbsolutePath());
        Tomcat tomcat = new Tomcat();
        tomcat.setBaseDir(folder.toString());
        Connector connector = new Connector("HTTP/1.1");
        connector.setProperty("address", bind.getAddress().getHostAddress());
        connector.setPort(bind.getPort());
        tomcat.getService().addConnector(connector);
        tomcat.setConnector(connector);
        Context context = tomcat.addContext("", folder.toString());
        Tomcat.addServlet(context, SERVLET, new Answering(codec, op, samples));
        context.addServletMapping("/" + op, SERVLET);
        tomcat.start();
        return connector.getLocalPort();
    }

    @Override
    public Lsp.Client call(String op, InetSocketAddress target, Map<String, String> factors) {
        throw new UnsupportedOperationException("only a server");
    }

    private static final class Answering extends HttpServlet {
        private final transient Codec codec;
        private final String op;
        private final transient Samples samples;

        Answering(Codec codec, String op, Samples samples) {
            this.codec = codec;
            this.op = op;
            this.samples = samples;
        }

        @Override
        protected void doPost(HttpServletRequest request, HttpServletResponse response) throws IOException {
            byte[] question = request.getInputStream().readAllBytes();
            Samples.Sample sample = samples.begin();
            sample.bytes(question.length);
            byte[] answer;
            try {
                answer = codec.writeAnswer(op, samples.work(op, codec.readRequest(op, question)));
            } catch (Exception error) {
                sample.done(false);
                response.setStatus(HttpServletResponse.SC_BAD_REQUEST);
                return;
            }
            sample.done(true);
            response.setContentType(codec.contentType());
            response.setContentLength(answer.length);
            response.getOutputStream().write(answer);
        }
    }
}
