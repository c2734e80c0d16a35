package stentor.lab.cxf;

import java.util.Arrays;
import java.util.Map;
import javax.ws.rs.Consumes;
import javax.ws.rs.POST;
import javax.ws.rs.Path;
import javax.ws.rs.Produces;
import javax.ws.rs.core.Response;
import org.apache.cxf.jaxrs.JAXRSServerFactoryBean;
import org.apache.cxf.jaxrs.client.WebClient;
import org.apache.cxf.jaxrs.lifecycle.SingletonResourceProvider;
import stentor.lab.Content;
import stentor.lab.Lsp;
import stentor.lab.Samples;
import stentor.lab.Times;

/** REST with XML: JAX-RS and JAXB. */
@Path("/")
@Consumes("application/xml")
@Produces("application/xml")
public class Rest {
    private final Samples samples;

    Rest(Samples samples) {
        this.samples = samples;
    }

    @POST
    @Path("echo")
    public Response echo(Beans.Payload payload) {
        return answer("echo", payload);
    }

    @POST
    @Path("sort")
    public Response sort(Beans.Numbers numbers) {
        return answer("sort", numbers);
    }

    @POST
    @Path("array")
    public Response array(Beans.Payload wish) {
        return answer("array", wish);
    }

    @POST
    @Path("points")
    public Response points(Beans.Payload wish) {
        return answer("points", wish);
    }

    private Response answer(String op, Beans.Root request) {
        try {
            return Response.ok(Beans.of(samples.work(op, request.content()))).build();
        } catch (RuntimeException error) {
            samples.current().done(false);
            return Response.status(400).build();
        }
    }

    static void serve(String address, Map<String, String> factors, Samples samples) {
        JAXRSServerFactoryBean factory = new JAXRSServerFactoryBean();
        factory.setResourceClasses(Rest.class);
        factory.setResourceProvider(Rest.class, new SingletonResourceProvider(new Rest(samples)));
        factory.setAddress(address);
        Stamps.server(factory, factors, samples);
        factory.create();
    }

    /** Asks with one client, or, as most tutorials do, with one for each exchange: the factor webclient = each. */
    static Lsp.Client call(String op, String address, Map<String, String> factors) {
        final Times[] current = {null};
        final boolean each = "each".equals(factors.get("webclient"));
        final WebClient only = each ? null : client(address + op, factors, current);
        final Class<?> kind = kind(op, factors.get("type"));
        return (request, times) -> {
            current[0] = times;
            WebClient client = each ? client(address + op, factors, current) : only;
            Content answer = ((Beans.Root) client.post(Beans.of(request), kind)).content();
            times.deserialized();
            return answer;
        };
    }

    private static WebClient client(String url, Map<String, String> factors, Times[] current) {
        WebClient client = WebClient.create(url);
        client.type("application/xml").accept("application/xml");
        Stamps.client(WebClient.getConfig(client), factors, current);
        return client;
    }

    private static Class<?> kind(String op, String type) {
        int at = Arrays.asList("echo", "sort", "array", "points").indexOf(op);
        Class<?> array = "Object".equals(type) ? Beans.Objects.class
            : "String".equals(type) ? Beans.Texts.class : Beans.Numbers.class;
        return new Class<?>[] {Beans.Payload.class, Beans.Numbers.class, array, Beans.Points.class}[at];
    }
}
