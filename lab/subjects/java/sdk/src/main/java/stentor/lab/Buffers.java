package stentor.lab;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.util.Map;

/** Whole messages, for frameworks that would stream: the factor buffering = whole. */
public final class Buffers {
    private static final int STEP_BYTES = 64 << 10;

    private Buffers() {}

    public static boolean areWhole(Map<String, String> factors) {
        return "whole".equals(factors.get("buffering"));
    }

    /** Reads all of a stream. */
    public static byte[] read(InputStream stream) throws IOException {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        byte[] step = new byte[STEP_BYTES];
        for (int count; (count = stream.read(step)) >= 0;) {
            all.write(step, 0, count);
        }
        return all.toByteArray();
    }
}
