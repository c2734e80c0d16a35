package stentor.device;

/** The device was removed from its app, and has no key to register anew. */
public final class DeviceRemovedException extends Exception {
    private static final long serialVersionUID = 1L;

    DeviceRemovedException(String why) {
        super(why);
    }
}
