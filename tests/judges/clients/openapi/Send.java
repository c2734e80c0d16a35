// Registers a device and sends a message through the client that openapi-generator has made.
import java.util.Map;
import org.openapitools.client.ApiClient;
import org.openapitools.client.ApiException;
import org.openapitools.client.api.DevicesApi;
import org.openapitools.client.api.MessagesApi;
import org.openapitools.client.auth.HttpBearerAuth;
import org.openapitools.client.model.*;

public class Send {
  public static void main(String[] arguments) throws ApiException {
    ApiClient client = new ApiClient();
    client.setBasePath(System.getenv("STENTOR_URL"));
    ((HttpBearerAuth) client.getAuthentication("bearer")).setBearerToken(System.getenv("STENTOR_KEY"));
    DeviceRegistration device =
        new DeviceRegistration().platform(Platform.ANDROID).token("token-of-java").user("maria");
    Registered registered = new DevicesApi(client).devicesRegister(device);
    Target target = new Target(new TargetUser().user("maria"));
    MessageRequest message = new MessageRequest().target(target).data(Map.of("from", "java"));
    MessageAccepted sent = new MessagesApi(client).messagesSend(message);
    System.out.println(registered.getId() + " " + sent.getId());
  }
}
