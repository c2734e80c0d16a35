package stentor.junit;

import java.util.Locale;

/** An emulator of the Apple Push Notification service. */
public final class ApnsEmulator extends Emulator<ApnsEmulator> {
    /** Makes an emulator, which is started before the tests. */
    public ApnsEmulator() {
        super("apns", "AuthKey.p8");
    }

    /** Returns the id of the signing key. */
    public String keyId() {
        return made("key_id");
    }

    /** Returns the team of the signing key. */
    public String teamId() {
        return made("team_id");
    }

    @Override
    ApnsEmulator self() {
        return this;
    }

    @Override
    String name(String token) {
        // Both spellings of a token are the same device.
        return token.toLowerCase(Locale.ROOT);
    }
}
