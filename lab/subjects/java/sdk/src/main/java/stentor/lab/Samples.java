package stentor.lab;

import java.io.ByteArrayOutputStream;
import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Map;
import java.util.TreeMap;

/** The samples of a server, in the order of arrival. */
public final class Samples {
    private static final long PATIENCE_NS = 2_000_000_000L;
    private final ThreadLocal<Sample> current = new ThreadLocal<>();
    /** By number. */
    private final Map<Long, byte[]> kept = new TreeMap<>();
    /** Null where points are made from the request. */
    private StoredPoints points;
    /** How often the service does its work for each request. */
    private int services = 1;
    private long seen;
    private int open;

    /** A request that is being answered. */
    public final class Sample {
        private long received = System.nanoTime();
        private long deserialized;
        private long worked;
        private int bytes;
        private int flags;
        private long number = -1;
        private boolean closed;

        /** Names the exchange as its client does, where messages may overtake each other; otherwise it has its place of arrival. */
        public void number(long number) {
            this.number = number;
        }

        /** Says that the whole request is there, and was not read before. */
        public void received() {
            received = System.nanoTime();
            flags &= ~Times.READ_WHILE_RECEIVED;
        }

        /** Says that the whole answer is written, and was not sent before. */
        public void written() {
            flags &= ~Times.SENT_WHILE_WRITTEN;
            done(true);
        }

        public void deserialized() {
            deserialized = System.nanoTime();
        }

        public void worked() {
            worked = System.nanoTime();
        }

        public void bytes(int count) {
            bytes = count;
        }

        /** Says that the request is read while it is received. */
        public void streamsIn() {
            flags |= Times.READ_WHILE_RECEIVED;
        }

        /** Says that the answer is sent while it is written, before it is done. */
        public void streamsOut() {
            flags |= Times.SENT_WHILE_WRITTEN;
        }

        /** Counts what is read of the request, while it is received. */
        public InputStream count(InputStream stream) {
            streamsIn();
            return new FilterInputStream(stream) {
                @Override
                public int read() throws IOException {
                    int one = super.read();
                    bytes += one < 0 ? 0 : 1;
                    return one;
                }

                @Override
                public int read(byte[] into, int from, int most) throws IOException {
                    int count = super.read(into, from, most);
                    bytes += Math.max(count, 0);
                    return count;
                }
            };
        }

        /** Ends it: the answer is bytes, or there is none. */
        public void done(boolean answered) {
            long serialized = System.nanoTime();
            synchronized (Samples.this) {
                if (!closed) {
                    closed = true;
                    keep(this, serialized, answered);
                }
            }
        }
    }

    /** Begins one; it is the thread's own until the next. */
    public Sample begin() {
        synchronized (this) {
            open++;
        }
        Sample sample = new Sample();
        current.set(sample);
        return sample;
    }

    /** Forgets the one that this thread began: it was no request. */
    public synchronized void drop() {
        open--;
        notifyAll();
    }

    /** Gives the one that this thread began. */
    public Sample current() {
        return current.get();
    }

    /** Does the work of a server, between two times. */
    public Content work(String op, Content request) {
        Sample sample = current();
        sample.deserialized();
        for (int more = 1; more < services; more++) {
            Reference.answer(op, request);
        }
        Content answer = points == null ? Reference.answer(op, request) : points.answer(request);
        sample.worked();
        return answer;
    }

    /** Does the work of each request so many times. */
    void repeat(int services) {
        this.services = services;
    }

    /** Answers from rows instead of from the request. */
    void answerFrom(StoredPoints points) {
        this.points = points;
    }

    private void keep(Sample sample, long serialized, boolean answered) {
        ByteBuffer bytes = ByteBuffer.allocate(Times.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        long number = sample.number < 0 ? seen : sample.number;
        seen++;
        bytes.putLong(number).putLong(sample.received).putLong(sample.deserialized).putLong(sample.worked);
        bytes.putLong(serialized).putLong(0).putLong(0);
        bytes.putShort((short) (answered ? 0 : Times.FAILED)).putShort((short) sample.flags).putInt(sample.bytes);
        kept.put(number, bytes.array());
        open--;
        notifyAll();
    }

    synchronized void clear() {
        kept.clear();
        seen = 0;
    }

    /** Gives all samples, once those under way have ended: a client may have its answer before we know that it was sent. */
    synchronized byte[] take() throws InterruptedException {
        long until = System.nanoTime() + PATIENCE_NS;
        while (open > 0 && System.nanoTime() < until) {
            wait(50);
        }
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        kept.values().forEach(sample -> all.write(sample, 0, Times.BYTES));
        return all.toByteArray();
    }
}
