package stentor.lab.plain;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import com.sun.net.httpserver.HttpsConfigurator;
import com.sun.net.httpserver.HttpsServer;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.HttpURLConnection;
import java.net.InetSocketAddress;
import java.net.URL;
import java.util.Map;
import java.util.concurrent.Executors;
import stentor.lab.Content;
import stentor.lab.Lsp;
import stentor.lab.Samples;
import stentor.lab.Times;
import stentor.lab.Tls;

/** REST: HttpURLConnection on one side, the JDK's own server on the other. */
final class Http {
    private Http() {}

    static int serve(Codec codec, String op, InetSocketAddress bind, Map<String, String> factors, Samples samples)
            throws Exception {
        System.setProperty("sun.net.httpserver.nodelay", "true");
        HttpServer server = Tls.isOn(factors) ? secured(bind, factors) : HttpServer.create(bind, 0);
        server.createContext("/" + op, exchange -> answer(codec, op, exchange, samples));
        server.setExecutor(Executors.newCachedThreadPool());
        server.start();
        return server.getAddress().getPort();
    }

    private static HttpServer secured(InetSocketAddress bind, Map<String, String> factors) throws Exception {
        HttpsServer server = HttpsServer.create(bind, 0);
        server.setHttpsConfigurator(new HttpsConfigurator(Tls.server(factors)));
        return server;
    }

    private static void answer(Codec codec, String op, HttpExchange exchange, Samples samples) {
        try (exchange) {
            byte[] request = exchange.getRequestBody().readAllBytes();
            Samples.Sample sample = samples.begin();
            sample.bytes(request.length);
            byte[] answer;
            try {
                answer = codec.writeAnswer(op, samples.work(op, codec.readRequest(op, request)));
            } catch (Exception error) {
                sample.done(false);
                exchange.sendResponseHeaders(400, -1);
                return;
            }
            sample.done(true);
            exchange.getResponseHeaders().set("Content-Type", codec.contentType());
            exchange.sendResponseHeaders(200, answer.length);
            exchange.getResponseBody().write(answer);
        } catch (java.io.IOException gone) {
            System.err.println(gone);
        }
    }

    /**
     * Asks; the factor keepalive = off gives each exchange a connection of its own, request = url puts the payload (letters
     * alone) into the address.
     */
    static Lsp.Client call(Codec codec, String op, InetSocketAddress target, Map<String, String> factors)
            throws Exception {
        Tls tls = Tls.client(factors);
        URL url = new URL(tls == null ? "http" : "https", target.getHostString(), target.getPort(), "/" + op);
        if ("off".equals(factors.get("keepalive"))) {
            // Looked at when the first connection is opened. A header would leave it to the server: what it closes without saying
            // so is taken for the next exchange.
            System.setProperty("http.keepAlive", "false");
        }
        boolean inAddress = "url".equals(factors.get("request"));
        return (request, times) -> {
            byte[] body = inAddress ? null : codec.writeRequest(op, request);
            URL address = inAddress ? new URL(url + "/" + request.payload) : url;
            times.serialized();
            HttpURLConnection connection = (HttpURLConnection) address.openConnection();
            if (tls != null) {
                tls.secure(connection);
            }
            if (!inAddress) {
                send(codec, op, connection, body);
            }
            byte[] answer;
            try (InputStream in = connection.getInputStream()) {
                answer = times.whole(in, connection.getContentLength());
            }
            Content content = codec.readAnswer(op, answer);
            times.deserialized();
            return content;
        };
    }

    private static void send(Codec codec, String op, HttpURLConnection connection, byte[] body) throws Exception {
        connection.setDoOutput(true);
        connection.setRequestProperty("Content-Type", codec.contentType());
        if (codec instanceof KsoapLike) {
            KsoapLike.headers(connection, op);
        }
        connection.setFixedLengthStreamingMode(body.length);
        try (OutputStream out = connection.getOutputStream()) {
            out.write(body);
        }
    }
}
