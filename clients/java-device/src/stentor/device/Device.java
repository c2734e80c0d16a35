package stentor.device;

import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.net.http.HttpClient;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Supplier;

/**
 * This machine as a device. Give handlers, then call `run`; `send` may be called at any time, connected or not.
 *
 * <p>It registers, listens, hands over what comes, confirms it, and sends what waits in its folder.
 */
public final class Device {
    /** Times that a message is handed to the program before it is left for the next connection. */
    private static final int TRIES_MAX_COUNT = 5;
    /** How often the outbox is looked at for what other processes have put there. */
    private static final Duration OUTBOX_INTERVAL = Duration.ofSeconds(2);
    /** A connection is made anew after this: only between connections a token is renewed. */
    private static final Duration CONNECTION_LIFE = Duration.ofHours(24);

    /** How often the server is asked whether it knows again who the device was. */
    private static final Duration FORMER_INTERVAL = Duration.ofHours(1);

    private static final Logger LOG = System.getLogger("stentor.device");

    private final Folder folder;
    private final String server;
    private final Service service;
    private final String key;
    private final Map<String, Object> told;
    private final Backoff backoff;
    private final Duration tokenLife;
    private final boolean encrypts;
    private final Supplier<String> proof;

    private final List<Consumer<Message>> notificationHandlers = new CopyOnWriteArrayList<>();
    private final List<Consumer<Message>> dataHandlers = new CopyOnWriteArrayList<>();
    private final List<Consumer<Long>> deletedHandlers = new CopyOnWriteArrayList<>();
    private final List<Consumer<String>> tokenHandlers = new CopyOnWriteArrayList<>();

    private final CountDownLatch stopped = new CountDownLatch(1);
    private final Semaphore mail = new Semaphore(0);
    private long formerTried = System.nanoTime() - FORMER_INTERVAL.toNanos();
    private volatile Memory own;
    private volatile EventStream stream;

    private Device(Builder builder) throws IOException {
        this.folder = new Folder(builder.folder);
        this.server = builder.server;
        this.service = new Service(builder.server, builder.http);
        this.key = builder.key;
        this.told = new LinkedHashMap<>(builder.told);
        this.backoff = builder.backoff;
        this.tokenLife = builder.tokenLife;
        this.encrypts = builder.encrypts;
        this.proof = builder.proof;
        this.own = folder.read();
    }

    /** Returns what a device is made with: where it remembers who it is, and where it connects to. */
    public static Builder builder(Path folder, String server) {
        return new Builder(folder, server);
    }

    /** What a device is made with. What is told of it is told when it registers. */
    public static final class Builder {
        private final Path folder;
        private final String server;
        private final Map<String, Object> told = new LinkedHashMap<>(Map.of("platform", "linux"));
        private String key;
        private Backoff backoff = Backoff.USUAL;
        private Duration tokenLife = Duration.ofDays(30);
        private HttpClient http;
        private boolean encrypts;
        private Supplier<String> proof;

        private Builder(Path folder, String server) {
            this.folder = folder;
            this.server = server;
        }

        /** Lets it register: a key with the scope `join`. */
        public Builder key(String key) {
            this.key = key;
            return this;
        }

        /** Says which system it is: `linux` unless said otherwise. */
        public Builder platform(String platform) {
            told.put("platform", platform);
            return this;
        }

        /** Says whose device it is. */
        public Builder user(String user) {
            told.put("user", user);
            return this;
        }

        /** Shows what the app's backend has signed, which vouches for user, tags and private topics. */
        public Builder proof(String proof) {
            return proof(() -> proof);
        }

        /** Does the same by what fetches it, which is asked when the device registers. */
        public Builder proof(Supplier<String> proof) {
            this.proof = proof;
            return this;
        }

        /** Gives it marks. */
        public Builder tags(String... tags) {
            told.put("tags", List.of(tags));
            return this;
        }

        /** Subscribes it to topics. */
        public Builder topics(String... topics) {
            told.put("topics", List.of(topics));
            return this;
        }

        /** Sets the waits between connections. */
        public Builder backoff(Backoff backoff) {
            this.backoff = backoff;
            return this;
        }

        /** Sets the age at which the token is renewed. */
        public Builder tokenLife(Duration tokenLife) {
            this.tokenLife = tokenLife;
            return this;
        }

        /** Makes keys, for which the server seals what it gives; a folder that has keys needs no word. */
        public Builder encrypt() {
            this.encrypts = true;
            return this;
        }

        /** Sets the client of HTTP, for a certificate authority or a proxy of one's own. */
        public Builder http(HttpClient http) {
            this.http = http;
            return this;
        }

        /** Returns the device; it reads what its folder remembers. */
        public Device build() throws IOException {
            return new Device(this);
        }
    }

    // === What a program says and asks ===

    /** Has messages with something for people handed over. A message is confirmed when no handler of it threw anything. */
    public Device onNotification(Consumer<Message> handler) {
        notificationHandlers.add(handler);
        return this;
    }

    /** Has messages with something for the program handed over; one with both goes to both kinds of handlers. */
    public Device onData(Consumer<Message> handler) {
        dataHandlers.add(handler);
        return this;
    }

    /** Has it told how many messages the server deleted because too many waited. */
    public Device onDeleted(Consumer<Long> handler) {
        deletedHandlers.add(handler);
        return this;
    }

    /** Has the token told, when it is the first one or another one, for an app server that sends to tokens. */
    public Device onToken(Consumer<String> handler) {
        tokenHandlers.add(handler);
        return this;
    }

    /** Returns the device's id; null until it has registered. */
    public String id() {
        Memory known = own;
        return known == null ? null : known.device;
    }

    /** Puts a message for the app into the outbox; it is on disk when this returns. Returns its name. */
    public String send(Map<String, ?> data) throws IOException {
        return send(data, null, null);
    }

    /** Does the same, with how long it may wait and a name; null is the usual. Sent twice under one name it is one message. */
    public String send(Map<String, ?> data, Duration ttl, String messageId) throws IOException {
        String name = folder.put(data, ttl, messageId);
        mail.release();
        return name;
    }

    /** Ends `run`, from a handler or another thread. A message that is being handled is confirmed first. */
    public void stop() {
        stopped.countDown();
        mail.release();
        closeStream();
    }

    /** Is the device until `stop`: connects, and connects again. */
    public void run() throws NotRegisteredException, DeviceRemovedException, InterruptedException {
        Thread sender = new Thread(this::sendForEver, "stentor-outbox");
        sender.setDaemon(true);
        sender.start();
        try {
            connectForEver();
        } finally {
            stop();
            sender.join();
        }
    }

    // === Connections ===

    private void connectForEver() throws NotRegisteredException, DeviceRemovedException, InterruptedException {
        int failures = 0;
        while (!isStopped()) {
            long began = System.nanoTime();
            String why;
            try {
                listen(sealed(registered()));
                failures = 0;
                continue;
            } catch (Service.UnknownDevice removed) {
                why = "the token opens nothing any more";
                noteRefusal();
            } catch (Service.Refused | IOException failed) {
                why = String.valueOf(failed.getMessage());
            }
            if (System.nanoTime() - began > Backoff.GOOD_CONNECTION.toNanos()) {
                failures = 0;
            }
            Duration wait = backoff.wait(++failures);
            if (!isStopped()) {
                LOG.log(Level.WARNING, "{0}; trying again in {1} ms", why, wait.toMillis());
                pause(wait);
            }
        }
    }

    /** Returns who the device is, registered and with a token that is not old. */
    private Memory registered() throws IOException, NotRegisteredException, Service.UnknownDevice {
        if (own == null || System.nanoTime() - formerTried >= FORMER_INTERVAL.toNanos()) {
            returnToFormer();
        }
        if (own != null) {
            return fresh(own);
        }
        boolean wasKnown = !folder.former().isEmpty();
        if (key == null && wasKnown) {
            throw new IOException("the token opens nothing any more");
        }
        if (key == null) {
            throw new NotRegisteredException("give a key with the scope `join`");
        }
        try {
            return keep(Memory.of(server, service.join(key, toldNow())));
        } catch (Service.Refused | Service.UnknownDevice refused) {
            if (wasKnown) {
                // The server has known this device, and may know it again.
                throw new IOException(refused.getMessage(), refused);
            }
            throw new NotRegisteredException(refused.getMessage());
        }
    }

    private Map<String, Object> toldNow() {
        Map<String, Object> now = new LinkedHashMap<>(told);
        if (proof != null) {
            now.put("proof", proof.get());
        }
        return now;
    }

    /** Becomes again who the device was, where the server knows that one again: messages may wait for it. */
    private void returnToFormer() throws IOException {
        formerTried = System.nanoTime();
        for (Map.Entry<Path, Memory> former : folder.former().entrySet()) {
            try {
                service.show(former.getValue());
            } catch (Service.UnknownDevice | Service.Refused unknown) {
                continue;
            }
            Memory newer = own;
            former.getValue().refusedSince = 0;
            keep(former.getValue());
            Files.delete(former.getKey());
            LOG.log(Level.WARNING, "the server knows {0} again", own.device);
            if (newer != null) {
                withdraw(newer);
            }
            return;
        }
    }

    /** Removes a device that was made in the place of one that is known again. */
    private void withdraw(Memory newer) {
        try {
            service.withdraw(newer);
        } catch (IOException | Service.Refused | Service.UnknownDevice failed) {
            LOG.log(Level.WARNING, "{0} is not removed: {1}", newer.device, failed.getMessage());
        }
    }

    private Memory fresh(Memory present) throws IOException, Service.UnknownDevice {
        if (System.currentTimeMillis() / 1_000 - present.tokenSince <= tokenLife.getSeconds()) {
            return present;
        }
        Map<String, Object> joined;
        try {
            joined = service.renew(present);
        } catch (Service.Refused | IOException failed) {
            LOG.log(Level.WARNING, "the token is not renewed: {0}", failed.getMessage());
            return present;
        }
        // It is kept before it is used: the server forgets the former one when the new one is used, and not before.
        return keep(present.renewed(joined));
    }

    /** Sees to it that the server seals before any message comes, where it is to. */
    private Memory sealed(Memory known) throws IOException, Service.Refused, Service.UnknownDevice {
        if (known.keys == null && encrypts) {
            // Kept before they are told: what is sealed from then on can be opened.
            known.keep(Keys.generate());
            keep(known);
        }
        if (known.keys != null && !Boolean.TRUE.equals(known.keys.get("is_told"))) {
            service.putKeys(known, known.opener.shared());
            known.keys.put("is_told", true);
            keep(known);
        }
        return known;
    }

    private Memory keep(Memory known) throws IOException {
        folder.keep(known);
        own = known;
        return known;
    }

    /** Notes that the server does not know the device. That may pass, as after a copy of its data was put back: nothing is erased. */
    private void noteRefusal() throws DeviceRemovedException {
        Memory known = own;
        if (known == null) {
            return;
        }
        known.noteRefusal();
        try {
            if (key != null) {
                folder.keepFormer(known);
                own = null;
            } else if (known.isOver()) {
                throw new DeviceRemovedException("the device was removed from its app; register it anew with a key");
            } else {
                folder.keep(known);
            }
        } catch (IOException kept) {
            LOG.log(Level.WARNING, "the folder cannot be changed", kept);
        }
    }

    /** Handles what comes; returns when the connection is old or the device is stopped. */
    private void listen(Memory known) throws IOException, InterruptedException, Service.Refused, Service.UnknownDevice {
        long until = System.nanoTime() + CONNECTION_LIFE.toNanos();
        try (EventStream events = new EventStream(service.events(known))) {
            stream = events;
            known.refusedSince = 0;
            mail.release();
            tellToken(known);
            while (!isStopped() && System.nanoTime() < until) {
                take(known, events.next());
            }
        } catch (IOException broken) {
            if (!isStopped()) {
                throw broken;
            }
        } finally {
            stream = null;
        }
    }

    private void closeStream() {
        EventStream open = stream;
        try {
            if (open != null) {
                open.close();
            }
        } catch (IOException closed) {
            LOG.log(Level.DEBUG, "the stream was closed", closed);
        }
    }

    private boolean isStopped() {
        return stopped.getCount() == 0;
    }

    /** Waits; returns whether the device was stopped meanwhile. */
    private boolean pause(Duration wait) throws InterruptedException {
        return stopped.await(wait.toMillis(), TimeUnit.MILLISECONDS);
    }

    // === Messages ===

    private void take(Memory known, EventStream.Event event)
            throws IOException, InterruptedException, Service.Refused, Service.UnknownDevice {
        try {
            if (event.name.equals("message")) {
                takeMessage(known, Message.read(event.data));
            } else if (event.name.equals("deleted")) {
                isTold(deletedHandlers, Long.valueOf(event.data));
            }
        } catch (IllegalArgumentException unreadable) {
            throw new IOException("an event cannot be read: " + unreadable.getMessage(), unreadable);
        }
    }

    private void takeMessage(Memory known, Message message)
            throws IOException, InterruptedException, Service.Refused, Service.UnknownDevice {
        if (!known.seen.contains(message.id())) {
            Message clear = opened(known, message);
            if (clear != null && !isHandled(clear)) {
                return;
            }
            // Remembered before it is confirmed: what is confirmed never comes again.
            known.noteSeen(message.id());
            folder.keep(known);
        }
        service.confirm(known, message.id());
    }

    /** Returns a message as it was before it was sealed; null for what nobody will ever open, so that it does not come for ever. */
    private static Message opened(Memory known, Message message) {
        if (!message.whole().containsKey("sealed")) {
            return message;
        }
        try {
            if (known.opener == null) {
                throw new IllegalArgumentException("this device has no keys");
            }
            return known.opener.opened(message);
        } catch (IllegalArgumentException never) {
            LOG.log(Level.WARNING, "{0}: {1}; it is given up", message.id(), never.getMessage());
            return null;
        }
    }

    private boolean isHandled(Message message) throws InterruptedException {
        for (int tries = 1; ; tries++) {
            try {
                handle(message);
                return true;
            } catch (RuntimeException failed) {
                // Whatever the program throws, its message must not be lost, and others must not wait for ever.
                LOG.log(Level.ERROR, "try " + tries + ": " + message.id() + " is not handled", failed);
            }
            if (tries == TRIES_MAX_COUNT || pause(backoff.wait(tries))) {
                return false;
            }
        }
    }

    private void handle(Message message) {
        if (!message.notification().isEmpty()) {
            notificationHandlers.forEach(handler -> handler.accept(message));
        }
        // What has neither, such as bytes of the app's own, is for the program too.
        if (!message.data().isEmpty() || message.notification().isEmpty()) {
            dataHandlers.forEach(handler -> handler.accept(message));
        }
    }

    /** Tells a token once it is known to open the door: sent to before that, it would lead nowhere. */
    private void tellToken(Memory known) throws IOException {
        boolean isNew = !tokenHandlers.isEmpty() && !known.toldToken.equals(known.token);
        if (isNew && isTold(tokenHandlers, known.token)) {
            known.toldToken = known.token;
            folder.keep(known);
        }
    }

    /** Tells all; what one of them throws is logged, and then it counts as not told. */
    private static <T> boolean isTold(List<Consumer<T>> handlers, T news) {
        try {
            handlers.forEach(handler -> handler.accept(news));
            return true;
        } catch (RuntimeException failed) {
            LOG.log(Level.ERROR, "a handler failed", failed);
            return false;
        }
    }

    // === The outbox ===

    private void sendForEver() {
        int failures = 0;
        try {
            while (!isStopped()) {
                EventStream open = stream;
                try {
                    if (open != null) {
                        open.closeIfSilent();
                        sendWaiting();
                    }
                    failures = 0;
                    mail.tryAcquire(OUTBOX_INTERVAL.toMillis(), TimeUnit.MILLISECONDS);
                    mail.drainPermits();
                } catch (IOException | Service.UnknownDevice failed) {
                    // What the token is worth, the other thread finds out.
                    LOG.log(Level.INFO, "the outbox waits: {0}", failed.getMessage());
                    pause(backoff.wait(++failures));
                }
            }
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
        }
    }

    private void sendWaiting() throws IOException, Service.UnknownDevice {
        for (Path path : folder.waiting()) {
            Memory known = own;
            if (known == null || stream == null || isStopped()) {
                return;
            }
            String message = Folder.message(path);
            if (message == null) {
                continue;
            }
            try {
                service.send(known, message);
                Files.delete(path);
            } catch (Service.Refused refused) {
                LOG.log(Level.WARNING, "{0} is refused and set aside: {1}", path.getFileName(), refused.getMessage());
                Folder.setAside(path);
            }
        }
    }
}
