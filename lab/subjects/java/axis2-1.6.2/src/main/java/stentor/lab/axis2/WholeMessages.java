package stentor.lab.axis2;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import org.apache.axis2.AxisFault;
import org.apache.axis2.builder.Builder;
import org.apache.axis2.engine.AxisConfiguration;
import org.apache.axis2.transport.MessageFormatter;

/** Lets Axis2 write a message into memory before it sends it, and read one only when it has arrived. */
final class WholeMessages {
    static final String REST = "application/xml";
    static final String SOAP = "text/xml";
    private static final String WRITING = "writeTo";
    private static final int WRITTEN_TO = 2;

    /** Reads all of a stream. */
    interface Reading {
        byte[] all(java.io.InputStream stream) throws IOException;
    }

    private WholeMessages() {}

    /** Replaces the builders and the formatters of both faces. */
    static void use(AxisConfiguration configuration, Reading reading, Runnable written) throws AxisFault {
        for (String type : new String[] {REST, SOAP}) {
            Builder inner = configuration.getMessageBuilder(type);
            configuration.addMessageBuilder(type, (stream, kind, message) -> {
                try {
                    return inner.processDocument(new ByteArrayInputStream(reading.all(stream)), kind, message);
                } catch (IOException error) {
                    throw AxisFault.makeFault(error);
                }
            });
            configuration.addMessageFormatter(type, buffered(configuration.getMessageFormatter(type), written));
        }
    }

    /** The versions of Axis2 differ in the methods of a formatter, all but the one that writes. */
    private static MessageFormatter buffered(MessageFormatter inner, Runnable written) {
        Class<?>[] kind = {MessageFormatter.class};
        return (MessageFormatter) Proxy.newProxyInstance(kind[0].getClassLoader(), kind, (proxy, method, arguments) -> {
            try {
                if (!method.getName().equals(WRITING)) {
                    return method.invoke(inner, arguments);
                }
                OutputStream network = (OutputStream) arguments[WRITTEN_TO];
                ByteArrayOutputStream whole = new ByteArrayOutputStream();
                Object[] changed = arguments.clone();
                changed[WRITTEN_TO] = whole;
                method.invoke(inner, changed);
                written.run();
                whole.writeTo(network);
                return null;
            } catch (InvocationTargetException error) {
                throw error.getCause();
            }
        });
    }
}
