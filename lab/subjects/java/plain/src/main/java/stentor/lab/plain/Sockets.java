package stentor.lab.plain;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.Map;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import stentor.lab.Content;
import stentor.lab.Lsp;
import stentor.lab.Samples;
import stentor.lab.Tls;

/** Frames on sockets; each side has two threads for a connection, one that receives and one that sends. */
final class Sockets {
    private static final int WAITING_MAX = 16;
    private static final int FRAME_MAX_BYTES = 64 << 20;
    private static final byte[] END = new byte[0];

    private Sockets() {}

    static int serve(Codec codec, String op, InetSocketAddress bind, Map<String, String> factors, Samples samples)
            throws Exception {
        ServerSocket listener = Tls.isOn(factors)
            ? Tls.server(factors).getServerSocketFactory().createServerSocket() : new ServerSocket();
        listener.setReuseAddress(true);
        listener.bind(bind);
        start("accepting", () -> {
            while (true) {
                Socket socket = listener.accept();
                BlockingQueue<byte[]> answers = sending(socket);
                start("receiving", () -> receive(codec, op, socket, samples, answers));
            }
        });
        return listener.getLocalPort();
    }

    private static void receive(Codec codec, String op, Socket socket, Samples samples, BlockingQueue<byte[]> answers)
            throws Exception {
        try (DataInputStream in = new DataInputStream(new BufferedInputStream(socket.getInputStream()))) {
            while (true) {
                byte[] request = frame(in);
                Samples.Sample sample = samples.begin();
                sample.bytes(request.length);
                byte[] answer = END;
                try {
                    answer = codec.writeAnswer(op, samples.work(op, codec.readRequest(op, request)));
                } catch (Exception error) {
                    System.err.println(error);
                }
                sample.done(answer != END);
                answers.put(framed(answer));
            }
        } catch (IOException gone) {
            answers.put(END);
        }
    }

    /** Starts a thread that sends whatever is put; an empty one ends it. */
    private static BlockingQueue<byte[]> sending(Socket socket) throws IOException {
        socket.setTcpNoDelay(true);
        BlockingQueue<byte[]> waiting = new ArrayBlockingQueue<>(WAITING_MAX);
        DataOutputStream out = new DataOutputStream(new BufferedOutputStream(socket.getOutputStream()));
        start("sending", () -> {
            for (byte[] frame; (frame = waiting.take()) != END;) {
                out.write(frame);
                out.flush();
            }
        });
        return waiting;
    }

    static Lsp.Client call(Codec codec, String op, InetSocketAddress target, Map<String, String> factors)
            throws Exception {
        Tls tls = Tls.client(factors);
        Socket open = new Socket(target.getHostString(), target.getPort());
        Socket socket = tls == null ? open : tls.secure(open);
        BlockingQueue<byte[]> requests = sending(socket);
        BlockingQueue<Object[]> answers = new ArrayBlockingQueue<>(WAITING_MAX);
        start("receiving", () -> {
            DataInputStream in = new DataInputStream(new BufferedInputStream(socket.getInputStream()));
            try {
                while (true) {
                    int length = in.readInt();
                    long first = System.nanoTime();
                    answers.put(new Object[] {first, body(in, length), System.nanoTime()});
                }
            } catch (IOException gone) {
                answers.put(new Object[] {0L, END, 0L});
            }
        });
        return (request, times) -> {
            byte[] bytes = codec.writeRequest(op, request);
            times.serialized();
            requests.put(framed(bytes));
            Object[] answer = answers.take();
            byte[] body = (byte[]) answer[1];
            if (body.length == 0) {
                throw new IOException("the server refused, or hung up");
            }
            times.firstByte = (Long) answer[0];
            times.end = (Long) answer[2];
            times.bytes = body.length;
            Content content = codec.readAnswer(op, body);
            times.deserialized();
            return content;
        };
    }

    private static byte[] frame(DataInputStream in) throws IOException {
        return body(in, in.readInt());
    }

    private static byte[] body(DataInputStream in, int length) throws IOException {
        if (length < 0 || length > FRAME_MAX_BYTES) {
            throw new IOException("a frame of " + length + " bytes");
        }
        byte[] body = new byte[length];
        in.readFully(body);
        return body;
    }

    private static byte[] framed(byte[] body) {
        return java.nio.ByteBuffer.allocate(4 + body.length).putInt(body.length).put(body).array();
    }

    private interface Work {
        void run() throws Exception;
    }

    private static void start(String name, Work work) {
        Thread thread = new Thread(() -> {
            try {
                work.run();
            } catch (Exception error) {
                System.err.println(name + ": " + error);
            }
        }, name);
        thread.setDaemon(true);
        thread.start();
    }
}
