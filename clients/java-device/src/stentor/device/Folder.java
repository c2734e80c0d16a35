package stentor.device;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.time.Instant;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** What a device remembers: the files of `stentor device run`, so that a folder of the one serves the other. */
final class Folder {
    /** Messages that wait at most: a device without a connection must not fill its disk. */
    static final int WAITING_MAX_COUNT = 10_000;

    private static final int FORMER_MAX_COUNT = 8;
    private static final Pattern FORMER = Pattern.compile("former-[A-Za-z0-9_]*\\.json");
    private static final Pattern NAME = Pattern.compile("[A-Za-z0-9_-][A-Za-z0-9_.-]{0,99}");
    private static final Set<StandardOpenOption> NEW =
            Set.of(StandardOpenOption.WRITE, StandardOpenOption.CREATE_NEW);

    private final Path memory;
    private final Path outbox;
    private long lastNanos;

    Folder(Path path) {
        this.memory = path.resolve("device.json");
        this.outbox = path.resolve("outbox");
    }

    /** Returns what is remembered; null where no device has run yet. */
    Memory read() throws IOException {
        try {
            return Memory.read(Files.readString(memory));
        } catch (NoSuchFileException none) {
            return null;
        } catch (RuntimeException foreign) {
            throw new IOException(memory + " cannot be read: remove it to register again", foreign);
        }
    }

    /** Keeps it: on disk when this returns. */
    void keep(Memory own) throws IOException {
        write(memory, own.write());
    }

    /** Remembers under another name who the device was; what waits to be sent stays. The oldest ones are kept. */
    void keepFormer(Memory own) throws IOException {
        if (former().size() < FORMER_MAX_COUNT) {
            write(memory.resolveSibling("former-" + own.device.replaceAll("[^A-Za-z0-9_]", "") + ".json"), own.write());
        }
        Files.delete(memory);
    }

    /** Returns who the device was, the oldest first; what is over is removed. */
    Map<Path, Memory> former() throws IOException {
        if (!Files.isDirectory(memory.getParent())) {
            return Map.of();
        }
        List<Path> paths;
        try (Stream<Path> all = Files.list(memory.getParent())) {
            paths = all.filter(path -> FORMER.matcher(path.getFileName().toString()).matches()).collect(Collectors.toList());
        }
        Map<Path, Memory> found = new LinkedHashMap<>();
        for (Path path : paths) {
            try {
                found.put(path, Memory.read(Files.readString(path)));
            } catch (RuntimeException foreign) {
                continue;
            }
            if (found.get(path).isOver()) {
                found.remove(path);
                Files.delete(path);
            }
        }
        Map<Path, Memory> sorted = new LinkedHashMap<>();
        found.entrySet().stream()
                .sorted(Comparator.comparingLong(one -> one.getValue().refusedSince))
                .forEach(one -> sorted.put(one.getKey(), one.getValue()));
        return sorted;
    }

    /** Puts a message into the outbox: on disk when this returns. Returns its name. */
    synchronized String put(Map<String, ?> data, Duration ttl, String messageId) throws IOException {
        String name = messageId != null ? messageId : newName();
        if (!NAME.matcher(name).matches()) {
            throw new IllegalArgumentException(
                    "messageId must be 1 to 100 letters, digits, `_`, `-` and `.`, and not begin with a dot");
        }
        if (waiting().size() >= WAITING_MAX_COUNT) {
            throw new IOException(WAITING_MAX_COUNT + " messages wait already");
        }
        Map<String, Object> message = new LinkedHashMap<>();
        message.put("message_id", name);
        message.put("data", data);
        if (ttl != null) {
            message.put("ttl_seconds", ttl.getSeconds());
        }
        write(outbox.resolve(name + ".json"), Json.write(message));
        return name;
    }

    /** Returns what waits to be sent, by name. */
    List<Path> waiting() throws IOException {
        if (!Files.isDirectory(outbox)) {
            return List.of();
        }
        try (Stream<Path> paths = Files.list(outbox)) {
            return paths.filter(path -> path.toString().endsWith(".json")).sorted().collect(Collectors.toList());
        }
    }

    /** Returns a message that waits; null for what is none: that is set aside, so that it holds nothing else up. */
    static String message(Path path) throws IOException {
        String text = Files.readString(path);
        try {
            Json.object(text);
            return text;
        } catch (IllegalArgumentException none) {
            setAside(path);
            return null;
        }
    }

    /** Keeps a message that the server will never take where it is not sent again. */
    static void setAside(Path path) throws IOException {
        String name = path.getFileName().toString().replaceFirst("\\.json$", ".refused");
        Files.move(path, path.resolveSibling(name), StandardCopyOption.ATOMIC_MOVE);
    }

    /** Returns a name that is greater than those before. */
    private String newName() {
        Instant now = Instant.now();
        lastNanos = Math.max(lastNanos + 1, now.getEpochSecond() * 1_000_000_000L + now.getNano());
        return String.format("%016x%.8s", lastNanos, UUID.randomUUID());
    }

    /** Writes a file whole or not at all; only its owner may read it. */
    private static void write(Path path, String text) throws IOException {
        Files.createDirectories(path.getParent());
        Path draft = path.resolveSibling(path.getFileName() + ".draft");
        // What another run left behind may have another mode.
        Files.deleteIfExists(draft);
        try (FileChannel file = FileChannel.open(draft, NEW, onlyOwner(path.getParent()))) {
            ByteBuffer bytes = ByteBuffer.wrap(text.getBytes(StandardCharsets.UTF_8));
            while (bytes.hasRemaining()) {
                file.write(bytes);
            }
            // The bytes before the name: after a power cut the name must not lead to nothing.
            file.force(true);
        }
        Files.move(draft, path, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
        if (isPosix(path.getParent())) {
            try (FileChannel folder = FileChannel.open(path.getParent())) {
                folder.force(true);
            }
        }
    }

    private static FileAttribute<?>[] onlyOwner(Path folder) throws IOException {
        if (!isPosix(folder)) {
            return new FileAttribute<?>[0];
        }
        Set<PosixFilePermission> owner = PosixFilePermissions.fromString("rw-------");
        return new FileAttribute<?>[] {PosixFilePermissions.asFileAttribute(owner)};
    }

    private static boolean isPosix(Path folder) throws IOException {
        return Files.getFileStore(folder).supportsFileAttributeView("posix");
    }
}
