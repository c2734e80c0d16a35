package stentor.lab.cxf;

import java.io.InputStream;
import org.apache.cxf.interceptor.InterceptorProvider;
import org.apache.cxf.message.Message;
import org.apache.cxf.phase.AbstractPhaseInterceptor;
import org.apache.cxf.phase.Phase;
import stentor.lab.Samples;
import stentor.lab.Times;

/** The times of phases, taken by interceptors at the ends of CXF's chains. */
final class Stamps {
    private Stamps() {}

    /** A step of a chain. */
    interface Step {
        void take(Message message);
    }

    private static AbstractPhaseInterceptor<Message> at(String phase, final Step step) {
        return new AbstractPhaseInterceptor<Message>(phase) {
            @Override
            public void handleMessage(Message message) {
                step.take(message);
            }
        };
    }

    /** A server: the request begins to be read while it arrives, and the answer is written, and mostly sent. */
    static void server(InterceptorProvider provider, final Samples samples) {
        provider.getInInterceptors().add(at(Phase.RECEIVE, message -> {
            InputStream stream = message.getContent(InputStream.class);
            Samples.Sample sample = samples.begin();
            sample.streamsIn();
            sample.streamsOut();
            if (stream != null) {
                message.setContent(InputStream.class, sample.count(stream));
            }
        }));
        provider.getOutInterceptors().add(at(Phase.PREPARE_SEND_ENDING, message -> samples.current().done(true)));
        provider.getOutFaultInterceptors().add(at(Phase.PREPARE_SEND_ENDING, message -> samples.current().done(false)));
    }

    /** A client: the request is written (and mostly sent), the answer arrives. */
    static void client(InterceptorProvider provider, final Times[] current) {
        provider.getOutInterceptors().add(at(Phase.PRE_STREAM_ENDING, message -> {
            current[0].serialized();
            current[0].flags |= Times.SENT_WHILE_WRITTEN;
        }));
        provider.getInInterceptors().add(at(Phase.RECEIVE, message -> {
            InputStream stream = message.getContent(InputStream.class);
            if (stream != null) {
                message.setContent(InputStream.class, current[0].watch(stream));
            }
        }));
    }
}
