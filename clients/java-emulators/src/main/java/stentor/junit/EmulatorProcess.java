package stentor.junit;

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Stream;

/** A running {@code stentor emulate}, with a folder for its files. */
final class EmulatorProcess {
    private static final long START_SECONDS_MAX = 60;
    private static final long STOP_SECONDS_MAX = 10;
    private static final long END_SECONDS_MAX = 1;
    /** The end of a log that an error shows. */
    private static final int LOG_CHARACTERS_MAX = 4096;

    private final Path folder;
    private final Path log;
    private final Process child;
    private final JsonObject ready;

    /** Starts the program and waits for its addresses. */
    EmulatorProcess(String service, String credential, String policy, Optional<Path> program) {
        String stentor = findProgram(program.map(Path::toString).or(EmulatorProcess::setting));
        try {
            folder = Files.createTempDirectory("stentor-");
            log = folder.resolve("log");
            // The emulator ends with its input, which ends with this process, however that ends.
            child = new ProcessBuilder(command(stentor, service, folder.resolve(credential), policy))
                    .redirectError(log.toFile())
                    .start();
        } catch (IOException error) {
            throw new UncheckedIOException(stentor + " cannot be started", error);
        }
        try {
            ready = JsonParser.parseString(firstLine()).getAsJsonObject();
            if (ready.has("error")) {
                throw new EmulatorException(ended().orElse(ready.get("error").getAsString()));
            }
        } catch (RuntimeException error) {
            stop();
            throw error;
        }
    }

    JsonObject ready() {
        return ready;
    }

    long pid() {
        return child.pid();
    }

    /** Says why the emulator has ended, if it has. */
    Optional<String> ended() {
        try {
            // A port may be gone a moment before its process.
            if (!child.waitFor(END_SECONDS_MAX, TimeUnit.SECONDS)) {
                return Optional.empty();
            }
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            return Optional.empty();
        }
        return Optional.of("stentor emulate has ended with code " + child.exitValue() + ": " + endOfLog());
    }

    /** Ends the emulator and removes its files. */
    void stop() {
        child.destroy();
        try {
            if (!child.waitFor(STOP_SECONDS_MAX, TimeUnit.SECONDS)) {
                child.destroyForcibly();
            }
        } catch (InterruptedException interrupted) {
            child.destroyForcibly();
            Thread.currentThread().interrupt();
        }
        try (Stream<Path> files = Files.walk(folder)) {
            files.sorted(Comparator.reverseOrder()).map(Path::toFile).forEach(File::delete);
        } catch (IOException error) {
            throw new UncheckedIOException(folder + " cannot be removed", error);
        }
    }

    private String firstLine() {
        BufferedReader output = child.inputReader(StandardCharsets.UTF_8);
        CompletableFuture<String> line = CompletableFuture.supplyAsync(() -> {
            try {
                return output.readLine();
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        });
        try {
            return Optional.ofNullable(line.get(START_SECONDS_MAX, TimeUnit.SECONDS))
                    .orElseThrow(() -> new EmulatorException(ended().orElse("stentor emulate has said nothing")));
        } catch (TimeoutException | ExecutionException error) {
            throw new EmulatorException("stentor emulate is not ready after " + START_SECONDS_MAX + " s", error);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new EmulatorException("the start was interrupted", interrupted);
        }
    }

    private String endOfLog() {
        try {
            String text = Files.readString(log).strip();
            return text.isEmpty() ? "its log is empty" : text.substring(Math.max(0, text.length() - LOG_CHARACTERS_MAX));
        } catch (IOException gone) {
            return "its log is gone";
        }
    }

    private static Optional<String> setting() {
        return Optional.ofNullable(System.getProperty("STENTOR_BIN", System.getenv("STENTOR_BIN")));
    }

    /** Returns the path of stentor: the wanted one, or the first in PATH. */
    private static String findProgram(Optional<String> wanted) {
        String name = wanted.orElse("stentor");
        List<String> folders = name.contains(File.separator)
                ? List.of("")
                : List.of(Optional.ofNullable(System.getenv("PATH")).orElse("").split(File.pathSeparator));
        return folders.stream()
                .map(folder -> Path.of(folder, name))
                .filter(file -> Files.isRegularFile(file) && Files.isExecutable(file))
                .map(file -> file.toAbsolutePath().toString())
                .findFirst()
                .orElseThrow(() -> new EmulatorException(wanted.map(
                                path -> path + " is not a program: set STENTOR_BIN to the path of stentor")
                        .orElse("stentor is not in PATH: install it, or set STENTOR_BIN to its path")));
    }

    private static List<String> command(String program, String service, Path credential, String policy) {
        return List.of(
                program, "emulate", service, "--json", "--end-with-input",
                "--listen", "127.0.0.1:0", "--control", "127.0.0.1:0",
                "--ca-dir", credential.getParent().toString(), "--credential", credential.toString(),
                "--keep-messages", "10000", "--policy", policy);
    }
}
