package stentor.lab.cxf;

import java.util.Map;
import javax.jws.WebService;
import org.apache.cxf.endpoint.Client;
import org.apache.cxf.frontend.ClientProxy;
import org.apache.cxf.jaxws.JaxWsProxyFactoryBean;
import org.apache.cxf.jaxws.JaxWsServerFactoryBean;
import stentor.lab.Content;
import stentor.lab.Lsp;
import stentor.lab.Samples;
import stentor.lab.Times;
import stentor.lab.cxf.soap.Holder;
import stentor.lab.cxf.soap.Lab;

/** SOAP 1.1: JAX-WS and JAXB. */
@WebService(endpointInterface = "stentor.lab.cxf.soap.Lab", targetNamespace = Lab.NAMESPACE, serviceName = "Lab")
public class Soap implements Lab {
    private final Samples samples;

    Soap(Samples samples) {
        this.samples = samples;
    }

    @Override
    public Holder echo(Holder request) {
        return answer("echo", request);
    }

    @Override
    public Holder sort(Holder request) {
        return answer("sort", request);
    }

    @Override
    public Holder array(Holder request) {
        return answer("array", request);
    }

    @Override
    public Holder points(Holder request) {
        return answer("points", request);
    }

    private Holder answer(String op, Holder request) {
        return Holder.of(samples.work(op, request.content()));
    }

    static void serve(String address, String op, Map<String, String> factors, Samples samples) {
        JaxWsServerFactoryBean factory = new JaxWsServerFactoryBean();
        factory.setServiceBean(new Soap(samples));
        factory.setAddress(address + op);
        Stamps.server(factory, factors, samples);
        factory.create();
    }

    static Lsp.Client call(final String op, String address, Map<String, String> factors) {
        JaxWsProxyFactoryBean factory = new JaxWsProxyFactoryBean();
        factory.setServiceClass(Lab.class);
        factory.setAddress(address + op);
        final Lab lab = (Lab) factory.create();
        final Times[] current = {null};
        Client client = ClientProxy.getClient(lab);
        Stamps.client(client, factors, current);
        return (request, times) -> {
            current[0] = times;
            Holder wish = Holder.of(request);
            Holder answer = op.equals("echo") ? lab.echo(wish) : op.equals("sort") ? lab.sort(wish)
                : op.equals("array") ? lab.array(wish) : lab.points(wish);
            Content content = answer.content();
            times.deserialized();
            return content;
        };
    }
}
