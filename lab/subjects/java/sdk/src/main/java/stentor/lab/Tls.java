package stentor.lab;

import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Arrays;
import java.util.Base64;
import java.util.Map;
import javax.net.ssl.HostnameVerifier;
import javax.net.ssl.HttpsURLConnection;
import javax.net.ssl.KeyManager;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.SSLSocketFactory;
import javax.net.ssl.TrustManagerFactory;

/** Encryption, in cells with tls=on: a client trusts the one certificate of the cell, and only as that of "lab". */
public final class Tls {
    private static final String NAME = "lab";
    private static final Integer DNS_NAME = 2;

    /** Only one: connections that are kept are found by it. */
    private final SSLSocketFactory factory;
    private final HostnameVerifier verifier;

    private Tls(SSLSocketFactory factory, HostnameVerifier verifier) {
        this.factory = factory;
        this.verifier = verifier;
    }

    /** Tells whether the cell wants it. */
    public static boolean isOn(Map<String, String> factors) {
        return "on".equals(factors.get("tls"));
    }

    /** Gets a client ready; null in cells without TLS. */
    public static Tls client(Map<String, String> factors) throws Exception {
        if (!isOn(factors)) {
            return null;
        }
        X509Certificate trusted = certificate(factors);
        KeyStore store = store();
        store.setCertificateEntry(NAME, trusted);
        TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(store);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, trust.getTrustManagers(), null);
        boolean named = trusted.getSubjectAlternativeNames() != null
            && trusted.getSubjectAlternativeNames().contains(Arrays.asList(DNS_NAME, NAME));
        // Java looks for the address of the target in the certificate, which has only a name: whoever does not find it asks
        // here, and the answer is yes for the trusted certificate with that name alone.
        return new Tls(context.getSocketFactory(), (target, session) -> {
            try {
                return named && trusted.equals(session.getPeerCertificates()[0]);
            } catch (javax.net.ssl.SSLPeerUnverifiedException nobody) {
                return false;
            }
        });
    }

    /** Gives sockets that trust the one certificate, for those who open them themselves. */
    public SSLSocketFactory sockets() {
        return factory;
    }

    /** Has a connection that is not open yet encrypt. */
    public void secure(HttpURLConnection connection) {
        ((HttpsURLConnection) connection).setSSLSocketFactory(factory);
        ((HttpsURLConnection) connection).setHostnameVerifier(verifier);
    }

    /** Has a connection of its own kind encrypt; here Java itself looks for the name. */
    public Socket secure(Socket socket) throws java.io.IOException {
        SSLSocket secured = (SSLSocket) factory.createSocket(socket, NAME, socket.getPort(), true);
        SSLParameters parameters = secured.getSSLParameters();
        parameters.setEndpointIdentificationAlgorithm("HTTPS");
        secured.setSSLParameters(parameters);
        secured.startHandshake();
        return secured;
    }

    /** Gets a server ready. */
    public static SSLContext server(Map<String, String> factors) throws Exception {
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(keys(factors), null, null);
        return context;
    }

    /** Gives the key of a server, for those who make their contexts themselves. */
    public static KeyManager[] keys(Map<String, String> factors) throws Exception {
        String pem = new String(Files.readAllBytes(Paths.get(factors.get("tls_key"))), StandardCharsets.US_ASCII);
        byte[] key = Base64.getMimeDecoder().decode(pem.replaceAll("-----[A-Z ]+-----", ""));
        KeyStore store = store();
        store.setKeyEntry(NAME, KeyFactory.getInstance("EC").generatePrivate(new PKCS8EncodedKeySpec(key)), new char[0],
            new Certificate[] {certificate(factors)});
        KeyManagerFactory keys = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        keys.init(store, new char[0]);
        return keys.getKeyManagers();
    }

    private static KeyStore store() throws Exception {
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        return store;
    }

    private static X509Certificate certificate(Map<String, String> factors) throws Exception {
        try (InputStream file = Files.newInputStream(Paths.get(factors.get("tls_certificate")))) {
            return (X509Certificate) CertificateFactory.getInstance("X.509").generateCertificate(file);
        }
    }
}
