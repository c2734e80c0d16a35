package stentor.device;

import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.security.AlgorithmParameters;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.PrivateKey;
import java.security.ProviderException;
import java.security.SecureRandom;
import java.security.spec.ECFieldFp;
import java.security.spec.ECGenParameterSpec;
import java.security.spec.ECParameterSpec;
import java.security.spec.ECPoint;
import java.security.spec.ECPrivateKeySpec;
import java.security.spec.ECPublicKeySpec;
import java.util.Arrays;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.Map;
import javax.crypto.Cipher;
import javax.crypto.KeyAgreement;
import javax.crypto.Mac;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.SecretKeySpec;

/** The keys of a device, as `stentor device run --encrypt` keeps them, and opening what was sealed for them (RFC 8291). */
final class Keys {
    private static final int SALT_BYTES = 16;
    /** Behind salt, record size and the length of the key (RFC 8188, 2.1). */
    private static final int KEY_PLACE = 21;
    private static final int POINT_BYTES = 65;
    private static final int HEADER_BYTES = KEY_PLACE + POINT_BYTES;
    /** The mark at its end, and its tag. Some versions of Java fail on less in a way of their own. */
    private static final int RECORD_MIN_BYTES = 17;
    private static final int NUMBER_BYTES = 32;
    private static final byte LAST_RECORD = 2;

    private static final BigInteger THREE = BigInteger.valueOf(3);

    /** P-256, of which each point has a y whose square is x^3 - 3x + b. */
    private final ECParameterSpec curve;
    private final BigInteger prime;
    private final PrivateKey secret;
    private final byte[] point;
    private final byte[] auth;

    private Keys(BigInteger number, byte[] auth) throws GeneralSecurityException {
        this.curve = curve();
        this.prime = ((ECFieldFp) curve.getCurve().getField()).getP();
        this.secret = KeyFactory.getInstance("EC").generatePrivate(new ECPrivateKeySpec(number, curve));
        this.point = written(times(curve.getGenerator(), number));
        this.auth = auth;
    }

    /** Returns what a folder remembers. Throws IllegalArgumentException for what are no keys. */
    static Keys read(Map<String, Object> kept) {
        byte[] number = bytes(kept.get("private"));
        byte[] auth = bytes(kept.get("auth"));
        try {
            BigInteger raw = new BigInteger(1, number);
            if (raw.signum() == 0 || raw.compareTo(curve().getOrder()) >= 0) {
                throw new IllegalArgumentException("keys that cannot be read");
            }
            return new Keys(raw, auth);
        } catch (GeneralSecurityException none) {
            throw new IllegalArgumentException("this JDK has no elliptic curves", none);
        }
    }

    /** Returns new keys, of which the server has not been told, as a folder remembers them. */
    static Map<String, Object> generate() {
        SecureRandom random = new SecureRandom();
        byte[] auth = new byte[SALT_BYTES];
        random.nextBytes(auth);
        try {
            BigInteger order = curve().getOrder();
            BigInteger number;
            do {
                number = new BigInteger(order.bitLength(), random);
            } while (number.signum() == 0 || number.compareTo(order) >= 0);
            Map<String, Object> kept = new LinkedHashMap<>();
            kept.put("private", text(padded(number)));
            kept.put("auth", text(auth));
            kept.put("is_told", false);
            return kept;
        } catch (GeneralSecurityException none) {
            throw new IllegalStateException("this JDK has no elliptic curves", none);
        }
    }

    /** Returns what others seal with. */
    Map<String, Object> shared() {
        return Map.of("p256dh", text(point), "auth", text(auth));
    }

    /** Returns a message as it was before it was sealed. Throws IllegalArgumentException where it cannot be opened. */
    Message opened(Message message) {
        Map<String, Object> sealed = Json.members(message.whole().get("sealed"));
        Object body = sealed.get("body");
        byte[] text = open(body instanceof String ? Base64.getDecoder().decode((String) body) : new byte[0]);
        Map<String, Object> whole = new LinkedHashMap<>(message.whole());
        whole.remove("sealed");
        if ("server".equals(sealed.get("by"))) {
            whole = new LinkedHashMap<>(Json.object(new String(text, StandardCharsets.UTF_8)));
            whole.put("id", message.id());
        } else {
            // What a sender has sealed is its own: a text in most cases.
            String own = new String(text, StandardCharsets.UTF_8);
            boolean isText = Arrays.equals(own.getBytes(StandardCharsets.UTF_8), text);
            whole.put("data", isText
                    ? Map.of("body", own)
                    : Map.of("body_base64", Base64.getEncoder().encodeToString(text)));
        }
        return Message.read(Json.write(whole));
    }

    /** Opens a body of the encoding `aes128gcm`, of one record. Throws IllegalArgumentException for what was not sealed for it. */
    byte[] open(byte[] body) {
        try {
            return decrypted(body);
        } catch (GeneralSecurityException | ProviderException wrong) {
            throw new IllegalArgumentException("this was not sealed for this device, or was changed on its way", wrong);
        }
    }

    private byte[] decrypted(byte[] body) throws GeneralSecurityException {
        if (body.length < HEADER_BYTES + RECORD_MIN_BYTES || body[KEY_PLACE - 1] != POINT_BYTES) {
            throw new GeneralSecurityException("a body without a key");
        }
        byte[] salt = Arrays.copyOf(body, SALT_BYTES);
        byte[] theirs = Arrays.copyOfRange(body, KEY_PLACE, HEADER_BYTES);
        KeyAgreement agreement = KeyAgreement.getInstance("ECDH");
        agreement.init(secret);
        agreement.doPhase(KeyFactory.getInstance("EC").generatePublic(new ECPublicKeySpec(read(theirs), curve)), true);
        byte[] agreed = mac(mac(auth, agreement.generateSecret()), info("WebPush: info"), point, theirs, new byte[] {1});
        byte[] root = mac(salt, agreed);
        byte[] key = mac(root, info("Content-Encoding: aes128gcm"), new byte[] {1});
        byte[] nonce = mac(root, info("Content-Encoding: nonce"), new byte[] {1});
        Cipher cipher = Cipher.getInstance("AES/GCM/NoPadding");
        GCMParameterSpec once = new GCMParameterSpec(128, nonce, 0, 12);
        cipher.init(Cipher.DECRYPT_MODE, new SecretKeySpec(key, 0, 16, "AES"), once);
        byte[] record = cipher.doFinal(body, HEADER_BYTES, body.length - HEADER_BYTES);
        int end = record.length - 1;
        while (end >= 0 && record[end] == 0) {
            end--;
        }
        // What is behind the mark is padding.
        if (end < 0 || record[end] != LAST_RECORD) {
            throw new GeneralSecurityException("a record that has no end");
        }
        return Arrays.copyOf(record, end);
    }

    // === Points of the curve ===

    private static ECParameterSpec curve() throws GeneralSecurityException {
        AlgorithmParameters parameters = AlgorithmParameters.getInstance("EC");
        parameters.init(new ECGenParameterSpec("secp256r1"));
        return parameters.getParameterSpec(ECParameterSpec.class);
    }

    /** Returns a point that somebody else has written, which must be one of the curve: others would tell of the secret. */
    private ECPoint read(byte[] written) throws GeneralSecurityException {
        BigInteger x = new BigInteger(1, Arrays.copyOfRange(written, 1, 1 + NUMBER_BYTES));
        BigInteger y = new BigInteger(1, Arrays.copyOfRange(written, 1 + NUMBER_BYTES, POINT_BYTES));
        BigInteger wanted = x.pow(3).subtract(x.multiply(THREE)).add(curve.getCurve().getB()).mod(prime);
        boolean isReduced = x.compareTo(prime) < 0 && y.compareTo(prime) < 0;
        if (written[0] != 4 || !isReduced || !y.multiply(y).mod(prime).equals(wanted)) {
            throw new GeneralSecurityException("no point of the curve");
        }
        return new ECPoint(x, y);
    }

    private static byte[] written(ECPoint point) {
        byte[] written = new byte[POINT_BYTES];
        written[0] = 4;
        System.arraycopy(padded(point.getAffineX()), 0, written, 1, NUMBER_BYTES);
        System.arraycopy(padded(point.getAffineY()), 0, written, 1 + NUMBER_BYTES, NUMBER_BYTES);
        return written;
    }

    /** Returns a multiple of a point: Java has nothing that makes a public key of a private one. Done once, when the keys are read. */
    private ECPoint times(ECPoint one, BigInteger number) {
        ECPoint sum = ECPoint.POINT_INFINITY;
        for (int bit = number.bitLength() - 1; bit >= 0; bit--) {
            sum = plus(sum, sum);
            sum = number.testBit(bit) ? plus(sum, one) : sum;
        }
        return sum;
    }

    private ECPoint plus(ECPoint a, ECPoint b) {
        if (a.equals(ECPoint.POINT_INFINITY) || b.equals(ECPoint.POINT_INFINITY)) {
            return a.equals(ECPoint.POINT_INFINITY) ? b : a;
        }
        BigInteger x = a.getAffineX();
        BigInteger y = a.getAffineY();
        BigInteger rise;
        if (!x.equals(b.getAffineX())) {
            rise = quotient(b.getAffineY().subtract(y), b.getAffineX().subtract(x));
        } else if (y.equals(b.getAffineY())) {
            rise = quotient(x.multiply(x).subtract(BigInteger.ONE).multiply(THREE), y.shiftLeft(1));
        } else {
            return ECPoint.POINT_INFINITY;
        }
        BigInteger sum = rise.multiply(rise).subtract(x).subtract(b.getAffineX()).mod(prime);
        return new ECPoint(sum, rise.multiply(x.subtract(sum)).subtract(y).mod(prime));
    }

    private BigInteger quotient(BigInteger of, BigInteger by) {
        return of.multiply(by.mod(prime).modInverse(prime)).mod(prime);
    }

    private static byte[] padded(BigInteger number) {
        byte[] bytes = number.toByteArray();
        byte[] padded = new byte[NUMBER_BYTES];
        int count = Math.min(bytes.length, NUMBER_BYTES);
        System.arraycopy(bytes, bytes.length - count, padded, NUMBER_BYTES - count, count);
        return padded;
    }

    // === Derivations ===

    private static byte[] mac(byte[] key, byte[]... parts) throws GeneralSecurityException {
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(key, "HmacSHA256"));
        for (byte[] part : parts) {
            mac.update(part);
        }
        return mac.doFinal();
    }

    private static byte[] info(String text) {
        return (text + "\0").getBytes(StandardCharsets.US_ASCII);
    }

    private static byte[] bytes(Object text) {
        byte[] bytes = text instanceof String ? Base64.getUrlDecoder().decode((String) text) : new byte[0];
        if (bytes.length == 0) {
            throw new IllegalArgumentException("keys that cannot be read");
        }
        return bytes;
    }

    private static String text(byte[] bytes) {
        return Base64.getUrlEncoder().withoutPadding().encodeToString(bytes);
    }
}
