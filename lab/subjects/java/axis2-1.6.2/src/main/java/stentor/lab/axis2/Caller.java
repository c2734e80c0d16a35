package stentor.lab.axis2;

import java.io.InputStream;
import java.util.Map;
import org.apache.axiom.om.OMElement;
import org.apache.axis2.AxisFault;
import org.apache.axis2.Constants;
import org.apache.axis2.addressing.EndpointReference;
import org.apache.axis2.builder.Builder;
import org.apache.axis2.client.Options;
import org.apache.axis2.client.ServiceClient;
import org.apache.axis2.context.ConfigurationContext;
import org.apache.axis2.context.ConfigurationContextFactory;
import org.apache.axis2.context.MessageContext;
import org.apache.axis2.description.TransportOutDescription;
import org.apache.axis2.engine.AxisConfiguration;
import stentor.lab.Buffers;
import stentor.lab.Content;
import stentor.lab.Lsp;
import stentor.lab.Times;

/** The client: the service client of Axis2 and trees of Axiom. */
final class Caller {
    private Caller() {}

    static Lsp.Client call(final boolean rest, final String op, String address, Map<String, String> factors)
            throws Exception {
        ConfigurationContext context = ConfigurationContextFactory.createDefaultConfigurationContext();
        for (TransportOutDescription transport : context.getAxisConfiguration().getTransportsOut().values()) {
            transport.getSender().init(context, transport);
        }
        final Times[] current = {null};
        AxisConfiguration configuration = context.getAxisConfiguration();
        if (Buffers.areWhole(factors)) {
            WholeMessages.use(configuration, stream -> current[0].whole(stream, 0), () -> {
                current[0].serialized();
                current[0].flags &= ~Times.SENT_WHILE_WRITTEN;
            });
        } else {
            for (String type : new String[] {WholeMessages.REST, WholeMessages.SOAP}) {
                Builder builder = configuration.getMessageBuilder(type);
                configuration.addMessageBuilder(type, new Watched(builder, current));
            }
        }
        final ServiceClient client = new ServiceClient(context, null);
        Options options = new Options();
        options.setTo(new EndpointReference(address + op));
        options.setAction(Service.NAMESPACE + "#" + op);
        options.setCallTransportCleanup(true);
        options.setProperty("REUSE_HTTP_CLIENT", Constants.VALUE_TRUE);
        if (rest) {
            options.setProperty(Constants.Configuration.ENABLE_REST, Constants.VALUE_TRUE);
            options.setProperty(Constants.Configuration.MESSAGE_TYPE, WholeMessages.REST);
            options.setProperty(Constants.Configuration.CONTENT_TYPE, WholeMessages.REST);
        }
        client.setOptions(options);
        return (request, times) -> {
            current[0] = times;
            OMElement tree = rest ? Tree.of(request) : Tree.wrapped(Service.NAMESPACE, op, request);
            times.serialized(); // The tree; its text is sent while it is written, unless messages are whole.
            times.flags |= Times.SENT_WHILE_WRITTEN;
            OMElement answer = client.sendReceive(tree);
            Content content = Tree.read(rest ? answer : answer.getFirstElement());
            times.deserialized();
            client.cleanupTransport();
            return content;
        };
    }

    /** A builder of Axis2 that counts the bytes of the answer and takes their times. */
    private static final class Watched implements Builder {
        private final Builder inner;
        private final Times[] current;

        Watched(Builder inner, Times[] current) {
            this.inner = inner;
            this.current = current;
        }

        @Override
        public OMElement processDocument(InputStream stream, String type, MessageContext message) throws AxisFault {
            return inner.processDocument(current[0].watch(stream), type, message);
        }
    }
}
