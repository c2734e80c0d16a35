package stentor.junit;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.util.Optional;

/**
 * A message that the emulator has accepted.
 *
 * @param number the number of the message, from 1
 * @param token the token, /topics/NAME or condition (FCM), or the channel of a broadcast (APNs)
 * @param payload the message as it was sent: the field {@code message} of FCM's request, the body of APNs' request
 * @param messageId the push service's id of the message
 * @param collapseKey the collapse key, if it has one
 * @param topic the topic: FCM's, or the header {@code apns-topic}
 * @param pushType the push type of APNs
 * @param highPriority whether the message may wake the device
 */
public record ArrivedMessage(
        long number,
        String token,
        JsonObject payload,
        String messageId,
        Optional<String> collapseKey,
        Optional<String> topic,
        Optional<String> pushType,
        boolean highPriority) {
    static ArrivedMessage of(JsonElement json) {
        JsonObject fields = json.getAsJsonObject();
        return new ArrivedMessage(
                fields.get("number").getAsLong(),
                fields.get("token").getAsString(),
                fields.getAsJsonObject("payload"),
                fields.get("message_id").getAsString(),
                text(fields, "collapse_key"),
                text(fields, "topic"),
                text(fields, "push_type"),
                fields.get("high_priority").getAsBoolean());
    }

    private static Optional<String> text(JsonObject fields, String name) {
        JsonElement value = fields.get(name);
        return value.isJsonNull() ? Optional.empty() : Optional.of(value.getAsString());
    }
}
