package stentor.device;

/** The device cannot register: no key was given, or the server refuses it for good. */
public final class NotRegisteredException extends Exception {
    private static final long serialVersionUID = 1L;

    NotRegisteredException(String why) {
        super(why);
    }
}
