package stentor.lab.cxf;

import java.util.Map;
import javax.ws.rs.Consumes;
import javax.ws.rs.GET;
import javax.ws.rs.POST;
import javax.ws.rs.Path;
import javax.ws.rs.PathParam;
import javax.ws.rs.Produces;
import javax.ws.rs.core.Response;
import org.apache.cxf.jaxrs.JAXRSServerFactoryBean;
import org.apache.cxf.jaxrs.lifecycle.SingletonResourceProvider;
import stentor.lab.Content;
import stentor.lab.Reference;
import stentor.lab.Samples;
import stentor.lab.json.OrgJson;

/** REST with JSON: JAX-RS, and org.json in the methods. A server only. */
@Path("/")
@Consumes("application/json")
@Produces("application/json")
public class JsonRest {
    private final Samples samples;
    private final boolean counts;
    private final OrgJson json = new OrgJson();

    JsonRest(Samples samples, Map<String, String> factors) {
        this.samples = samples;
        this.counts = "number".equals(factors.get("reply"));
    }

    @POST
    @Path("{op}")
    public Response post(@PathParam("op") String op, byte[] body) {
        try {
            return answer(op, json.read(body));
        } catch (RuntimeException error) {
            return refusal();
        }
    }

    /** The factor request = url: the payload is in the address. */
    @GET
    @Path("echo/{payload}")
    @Consumes("*/*")
    public Response get(@PathParam("payload") String payload) {
        samples.current().bytes(payload.length());
        return answer("echo", Content.ofPayload(payload));
    }

    private Response answer(String op, Content request) {
        Content answer = samples.work(counts ? Reference.COUNT : op, request);
        return Response.ok(json.write(answer)).build();
    }

    private Response refusal() {
        samples.current().done(false);
        return Response.status(400).build();
    }

    static void serve(String address, Map<String, String> factors, Samples samples) {
        JAXRSServerFactoryBean factory = new JAXRSServerFactoryBean();
        factory.setResourceClasses(JsonRest.class);
        factory.setResourceProvider(JsonRest.class, new SingletonResourceProvider(new JsonRest(samples, factors)));
        factory.setAddress(address);
        Stamps.server(factory, factors, samples);
        factory.create();
    }
}
