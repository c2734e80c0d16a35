package stentor.junit;

/** An emulator of Firebase Cloud Messaging (HTTP v1). */
public final class FcmEmulator extends Emulator<FcmEmulator> {
    /** Makes an emulator, which is started before the tests. */
    public FcmEmulator() {
        super("fcm", "service-account.json");
    }

    /** Returns the project of the service account. */
    public String projectId() {
        return made("project_id");
    }

    @Override
    FcmEmulator self() {
        return this;
    }
}
