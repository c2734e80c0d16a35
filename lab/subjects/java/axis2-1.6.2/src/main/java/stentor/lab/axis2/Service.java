package stentor.lab.axis2;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.util.Map;
import javax.xml.namespace.QName;
import org.apache.axiom.om.OMAbstractFactory;
import org.apache.axiom.om.OMElement;
import org.apache.axiom.soap.SOAPEnvelope;
import org.apache.axiom.soap.SOAPFactory;
import org.apache.axis2.AxisFault;
import org.apache.axis2.context.ConfigurationContext;
import org.apache.axis2.context.ConfigurationContextFactory;
import org.apache.axis2.context.MessageContext;
import org.apache.axis2.description.AxisOperation;
import org.apache.axis2.description.AxisService;
import org.apache.axis2.description.HandlerDescription;
import org.apache.axis2.description.InOutAxisOperation;
import org.apache.axis2.description.TransportOutDescription;
import org.apache.axis2.engine.AxisConfiguration;
import org.apache.axis2.handlers.AbstractHandler;
import org.apache.axis2.receivers.AbstractInOutMessageReceiver;
import org.apache.axis2.transport.TransportSender;
import org.apache.axis2.transport.http.HTTPWorker;
import org.apache.axis2.transport.http.SimpleHTTPServer;
import org.apache.axis2.transport.http.server.AxisHttpRequest;
import org.apache.axis2.transport.http.server.AxisHttpResponse;
import org.apache.axis2.transport.http.server.HttpFactory;
import org.apache.axis2.transport.http.server.WorkerFactory;
import org.apache.http.HttpException;
import stentor.lab.Buffers;
import stentor.lab.Content;
import stentor.lab.Samples;

/** The server: one service, that answers SOAP and REST alike, behind Axis2's simple HTTP server. */
final class Service {
    static final String NAMESPACE = "urn:stentor:lab";

    private Service() {}

    static int serve(final String op, InetSocketAddress bind, Map<String, String> factors, final Samples samples)
            throws Exception {
        int port = bind.getPort();
        if (port == 0) { // The simple server does not tell which port it was given.
            try (ServerSocket free = new ServerSocket(0)) {
                port = free.getLocalPort();
            }
        }
        ConfigurationContext context = ConfigurationContextFactory.createDefaultConfigurationContext();
        AxisConfiguration configuration = context.getAxisConfiguration();
        configuration.addParameter("disableREST", "false");
        AxisService service = new AxisService("Lab");
        AxisOperation operation = new InOutAxisOperation(new QName(NAMESPACE, op));
        operation.setMessageReceiver(new Receiver(op, samples));
        operation.setSoapAction(NAMESPACE + "#" + op);
        service.addOperation(operation);
        configuration.addService(service);
        for (TransportOutDescription transport : configuration.getTransportsOut().values()) {
            transport.setSender(new Sender(transport.getSender(), samples));
            transport.getSender().init(context, transport);
        }
        if (Buffers.areWhole(factors)) {
            WholeMessages.use(configuration, stream -> {
                byte[] request = Buffers.read(stream);
                samples.current().received();
                return request;
            }, () -> samples.current().written());
        }
        WorkerFactory workers = () -> new TimedWorker(service, operation, samples);
        new SimpleHTTPServer(new HttpFactory(context, port, workers)).start();
        return port;
    }

    /** Axis2's own worker, that gives every request to the only operation there is, and takes the time before. */
    private static final class TimedWorker extends HTTPWorker {
        private final AxisService service;
        private final AxisOperation operation;
        private final Samples samples;

        TimedWorker(AxisService service, AxisOperation operation, Samples samples) {
            this.service = service;
            this.operation = operation;
            this.samples = samples;
        }

        @Override
        public void service(AxisHttpRequest request, AxisHttpResponse response, MessageContext message)
                throws HttpException, IOException {
            Samples.Sample sample = samples.begin();
            sample.streamsIn(); // The tree grows while the request arrives, and the answer is sent while the other is written.
            sample.streamsOut(); // Both are taken back where a message is whole.
            message.setAxisService(service);
            message.setAxisOperation(operation);
            try {
                super.service(request, response, message);
            } finally {
                sample.done(false);
            }
        }
    }

    /** Reads the tree, works, makes a tree. */
    private static final class Receiver extends AbstractInOutMessageReceiver {
        private final String op;
        private final Samples samples;

        Receiver(String op, Samples samples) {
            this.op = op;
            this.samples = samples;
        }

        /** Gives the length that the request's headers name; a request in chunks names none. */
        private static int length(MessageContext in) {
            Object headers = in.getProperty(MessageContext.TRANSPORT_HEADERS);
            if (headers instanceof Map) {
                for (Map.Entry<?, ?> header : ((Map<?, ?>) headers).entrySet()) {
                    if (header.getKey().toString().equalsIgnoreCase("Content-Length")) {
                        return Integer.parseInt(header.getValue().toString());
                    }
                }
            }
            return 0;
        }

        @Override
        public void invokeBusinessLogic(MessageContext in, MessageContext out) throws AxisFault {
            try {
                samples.current().bytes(length(in));
                OMElement body = in.getEnvelope().getBody().getFirstElement();
                boolean rest = in.isDoingREST();
                Content answer = samples.work(op, Tree.read(rest ? body : body.getFirstElement()));
                SOAPFactory factory = OMAbstractFactory.getSOAP11Factory();
                SOAPEnvelope envelope = factory.getDefaultEnvelope();
                envelope.getBody().addChild(
                    rest ? Tree.of(answer) : Tree.wrapped(NAMESPACE, op + "Response", answer));
                out.setEnvelope(envelope);
            } catch (Exception error) {
                samples.current().done(false);
                throw AxisFault.makeFault(error);
            }
        }
    }

    /** The transport's own sender, and the time when it has written the answer. */
    private static final class Sender extends AbstractHandler implements TransportSender {
        private final TransportSender inner;
        private final Samples samples;

        Sender(TransportSender inner, Samples samples) {
            this.inner = inner;
            this.samples = samples;
            init(inner.getHandlerDesc() == null ? new HandlerDescription("Sender") : inner.getHandlerDesc());
        }

        @Override
        public InvocationResponse invoke(MessageContext message) throws AxisFault {
            InvocationResponse response = inner.invoke(message);
            samples.current().done(true);
            return response;
        }

        @Override
        public void init(ConfigurationContext context, TransportOutDescription transport) throws AxisFault {
            inner.init(context, transport);
        }

        @Override
        public void cleanup(MessageContext message) throws AxisFault {
            inner.cleanup(message);
        }

        @Override
        public void stop() {
            inner.stop();
        }
    }
}
