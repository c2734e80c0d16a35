package stentor.lab.rivals;

import java.util.Arrays;
import java.util.List;
import java.util.Map;

/** The one device that is answered with, as the factors tell it: the same values that the measured server answers with. */
public final class KnownDevice {
    public final String id;
    public final String platform;
    public final String provider;
    public final String tokenHint;
    public final String registeredAt;
    public final String tokenSince;
    public final String state;
    public final String locale;
    public final String timeZone;
    public final String user;
    public final List<String> tags;

    KnownDevice(Map<String, String> factors) {
        id = factors.get("id");
        platform = factors.get("platform");
        provider = factors.get("provider");
        tokenHint = factors.get("token_hint");
        registeredAt = factors.get("registered_at");
        tokenSince = factors.get("token_since");
        state = factors.get("state");
        locale = factors.get("locale");
        timeZone = factors.get("time_zone");
        user = factors.get("user");
        tags = Arrays.asList(factors.get("tags").split(";"));
    }

    /** Fails unless this device is asked for. */
    public void demand(String asked) {
        if (!id.equals(asked)) {
            throw new IllegalArgumentException("there is no such device");
        }
    }
}
