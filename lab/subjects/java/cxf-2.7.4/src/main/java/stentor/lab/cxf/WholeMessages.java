package stentor.lab.cxf;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import org.apache.cxf.interceptor.Fault;
import org.apache.cxf.interceptor.MessageSenderInterceptor;
import org.apache.cxf.message.Message;
import org.apache.cxf.phase.AbstractPhaseInterceptor;
import org.apache.cxf.phase.Phase;

/** Lets the rest of the chain write a message into memory, and only then sends it. */
final class WholeMessages extends AbstractPhaseInterceptor<Message> {
    private static final String WHOLE = WholeMessages.class.getName();

    WholeMessages() {
        super(Phase.PREPARE_SEND);
        addAfter(MessageSenderInterceptor.class.getName());
    }

    /** Tells whether a message is written into memory. */
    static boolean is(Message message) {
        return message.containsKey(WHOLE);
    }

    @Override
    public void handleMessage(Message message) {
        OutputStream network = message.getContent(OutputStream.class);
        if (network == null) {
            return;
        }
        ByteArrayOutputStream whole = new ByteArrayOutputStream();
        message.put(WHOLE, Boolean.TRUE);
        message.setContent(OutputStream.class, whole);
        message.getInterceptorChain().doIntercept(message);
        message.setContent(OutputStream.class, network);
        try {
            whole.writeTo(network);
            network.close();
        } catch (IOException error) {
            throw new Fault(error);
        }
    }
}
