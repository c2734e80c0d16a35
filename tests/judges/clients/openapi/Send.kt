// Registers a device and sends a message through the client that openapi-generator has made.
import org.openapitools.client.apis.DevicesApi
import org.openapitools.client.apis.MessagesApi
import org.openapitools.client.infrastructure.ApiClient
import org.openapitools.client.models.*

fun main() {
    val url = System.getenv("STENTOR_URL")
    ApiClient.accessToken = System.getenv("STENTOR_KEY")
    val device = DeviceRegistration(platform = Platform.android, token = "token-of-kotlin", user = "maria")
    val registered = DevicesApi(url).devicesRegister(device)
    val target = Target(TargetUser(user = "maria"))
    val sent = MessagesApi(url).messagesSend(MessageRequest(target = target, data = mapOf("from" to "kotlin")))
    println("${registered.id} ${sent.id}")
}
