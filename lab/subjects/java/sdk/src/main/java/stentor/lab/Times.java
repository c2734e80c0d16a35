package stentor.lab;

import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** The times of an exchange as its client sees them, in nanoseconds of CLOCK_MONOTONIC, which System.nanoTime is on Linux. */
public final class Times {
    /** Bytes of a sample. */
    static final int BYTES = 64;
    private static final int READ_BYTES = 64 << 10;
    /** Status: the exchange failed. */
    public static final int FAILED = 1;
    /** Status: the heap was too small. */
    public static final int OUT_OF_MEMORY = 2;
    /** Flag: the request (a server: the answer) was sent while it was still being written: neither has a time of its own. */
    public static final int SENT_WHILE_WRITTEN = 1;
    /** Flag: the answer (a server: the request) was read while it was still being received. */
    public static final int READ_WHILE_RECEIVED = 2;

    public long start;
    public long serialized;
    public long firstByte;
    public long end;
    public long deserialized;
    /** When rows were kept; 0 where none were. */
    long inserted;
    public int status;
    public int flags;
    public int bytes;

    public void serialized() {
        serialized = System.nanoTime();
    }

    public void deserialized() {
        deserialized = System.nanoTime();
    }

    /** Counts what is read and keeps the times of the first and the last byte. */
    public InputStream watch(InputStream stream) {
        flags |= READ_WHILE_RECEIVED;
        return new FilterInputStream(stream) {
            @Override
            public int read() throws IOException {
                int one = super.read();
                got(one < 0 ? 0 : 1);
                return one;
            }

            @Override
            public int read(byte[] into, int from, int most) throws IOException {
                int count = super.read(into, from, most);
                got(Math.max(count, 0));
                return count;
            }
        };
    }

    private void got(int count) {
        if (count > 0) {
            end = System.nanoTime();
            bytes += count;
            if (firstByte == 0) {
                firstByte = end;
            }
        }
    }

    /** Reads all of a stream, and only then gives it. */
    public byte[] whole(InputStream stream, int expected) throws IOException {
        byte[] bytes = new byte[Math.max(expected, 8192)];
        int length = 0;
        while (true) {
            int most = Math.min(length == 0 ? 1 : READ_BYTES, bytes.length - length); // One byte first, for its time.
            int count = stream.read(bytes, length, most);
            if (count < 0) {
                break;
            }
            got(count);
            length += count;
            if (length == expected) {
                break;
            }
            if (length == bytes.length) {
                bytes = java.util.Arrays.copyOf(bytes, 2 * bytes.length);
            }
        }
        return length == bytes.length ? bytes : java.util.Arrays.copyOf(bytes, length);
    }

    byte[] sample(long seq, long intended) {
        ByteBuffer sample = ByteBuffer.allocate(BYTES).order(ByteOrder.LITTLE_ENDIAN);
        sample.putLong(seq).putLong(intended).putLong(start).putLong(serialized).putLong(firstByte);
        sample.putLong(end).putLong(deserialized);
        return sample.putShort((short) status).putShort((short) flags).putInt(bytes).array();
    }

    byte[] inserted() {
        return ByteBuffer.allocate(Long.BYTES).order(ByteOrder.LITTLE_ENDIAN).putLong(inserted).array();
    }
}
