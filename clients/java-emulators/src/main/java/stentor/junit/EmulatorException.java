package stentor.junit;

/** An emulator that cannot start, has ended or refuses a request. */
public final class EmulatorException extends RuntimeException {
    private static final long serialVersionUID = 1;

    EmulatorException(String message) {
        super(message);
    }

    EmulatorException(String message, Throwable cause) {
        super(message, cause);
    }
}
