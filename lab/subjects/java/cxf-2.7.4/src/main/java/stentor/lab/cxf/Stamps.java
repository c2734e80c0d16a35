package stentor.lab.cxf;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.util.Map;
import org.apache.cxf.interceptor.Fault;
import org.apache.cxf.interceptor.InterceptorProvider;
import org.apache.cxf.message.Message;
import org.apache.cxf.phase.AbstractPhaseInterceptor;
import org.apache.cxf.phase.Phase;
import stentor.lab.Buffers;
import stentor.lab.Samples;
import stentor.lab.Times;

/** The times of phases, taken by interceptors at the ends of CXF's chains. */
final class Stamps {
    private Stamps() {}

    /** A step of a chain. */
    interface Step {
        void take(Message message);
    }

    /** A step that replaces the stream of an incoming message. */
    private interface Reading {
        InputStream of(InputStream stream) throws IOException;
    }

    private static AbstractPhaseInterceptor<Message> at(String phase, final Step step) {
        return new AbstractPhaseInterceptor<Message>(phase) {
            @Override
            public void handleMessage(Message message) {
                step.take(message);
            }
        };
    }

    private static AbstractPhaseInterceptor<Message> received(final Reading reading) {
        return at(Phase.RECEIVE, message -> {
            InputStream stream = message.getContent(InputStream.class);
            if (stream != null) {
                try {
                    message.setContent(InputStream.class, reading.of(stream));
                } catch (IOException error) {
                    throw new Fault(error);
                }
            }
        });
    }

    /**
     * A server. As CXF does it, the request is read while it arrives, and the answer is mostly sent when it is written; with whole
     * messages each is complete before.
     */
    static void server(InterceptorProvider provider, Map<String, String> factors, final Samples samples) {
        if (Buffers.areWhole(factors)) {
            provider.getInInterceptors().add(received(stream -> {
                byte[] request = Buffers.read(stream);
                samples.begin().bytes(request.length);
                return new ByteArrayInputStream(request);
            }));
            provider.getOutInterceptors().add(new WholeMessages());
        } else {
            provider.getInInterceptors().add(received(stream -> samples.begin().count(stream)));
        }
        provider.getOutInterceptors().add(at(Phase.PREPARE_SEND_ENDING, message -> {
            if (!WholeMessages.is(message)) {
                samples.current().streamsOut();
            }
            samples.current().done(true);
        }));
        provider.getOutFaultInterceptors().add(at(Phase.PREPARE_SEND_ENDING, message -> samples.current().done(false)));
    }

    /** A client: the request is written (and mostly sent, unless messages are whole), the answer arrives. */
    static void client(InterceptorProvider provider, Map<String, String> factors, final Times[] current) {
        final boolean whole = Buffers.areWhole(factors);
        if (whole) {
            provider.getOutInterceptors().add(new WholeMessages());
        }
        provider.getOutInterceptors().add(at(Phase.PRE_STREAM_ENDING, message -> {
            current[0].serialized();
            current[0].flags |= WholeMessages.is(message) ? 0 : Times.SENT_WHILE_WRITTEN;
        }));
        provider.getInInterceptors().add(received(stream ->
            whole ? new ByteArrayInputStream(current[0].whole(stream, 0)) : current[0].watch(stream)));
    }
}
