package stentor.junit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestMethodOrder;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;

/** The kit itself: what a test can read and choose, and how it fails. */
@TestMethodOrder(MethodOrderer.OrderAnnotation.class)
class EmulatorTest {
    private static final String PHONE = "ab".repeat(32);
    private static final String REFUSING =
            "{\"mix\": {\"accept\": 0, \"errors\": [{\"error\": {\"code\": \"InternalServerError\"}, \"weight\": 1}]}}";

    @TempDir
    static Path folder;

    @RegisterExtension
    static final ApnsEmulator apns = new ApnsEmulator().withProgram(withoutProviderTokens());

    @RegisterExtension
    final FcmEmulator ofOneTest = new FcmEmulator();

    /** Writes a program that starts stentor with settings of its own. */
    private static Path withoutProviderTokens() {
        try {
            Path own = Files.createTempDirectory("kit-");
            Path settings = Files.writeString(own.resolve("settings.json"), "{\"require_token\": false}");
            Path program = own.resolve("stentor");
            String stentor = System.getenv("STENTOR_BIN");
            Files.writeString(program, "#!/bin/sh\nexec '" + stentor + "' \"$@\" --config '" + settings + "'\n");
            assertTrue(program.toFile().setExecutable(true));
            return program;
        } catch (IOException error) {
            throw new AssertionError(error);
        }
    }

    private static int send(ApnsEmulator to, String token) throws Exception {
        HttpClient http = HttpClient.newBuilder().sslContext(to.sslContext()).build();
        HttpRequest request = HttpRequest.newBuilder(to.url().resolve("/3/device/" + token))
                .header("apns-topic", "org.example.app")
                .POST(BodyPublishers.ofString("{\"aps\": {}}"))
                .build();
        return http.send(request, BodyHandlers.discarding()).statusCode();
    }

    @Test
    @Order(1)
    void messages_are_read_for_all_tokens_or_for_one() throws Exception {
        assertEquals(200, send(apns, PHONE));
        assertEquals(200, send(apns, "cd".repeat(32)));
        assertEquals(2, apns.messages().size());
        assertEquals(1, apns.messages(PHONE.toUpperCase()).size());
    }

    @Test
    @Order(2)
    void the_messages_of_another_test_are_forgotten() {
        assertEquals(List.of(), apns.messages());
        assertEquals(new TokenCounts(0, 0, 0, 0), apns.counts(PHONE));
    }

    @Test
    void a_wait_ends_when_the_messages_have_arrived() throws Exception {
        CompletableFuture<List<ArrivedMessage>> waiting =
                CompletableFuture.supplyAsync(() -> apns.waitFor(2, PHONE, Duration.ofSeconds(60)));
        send(apns, PHONE);
        send(apns, "cd".repeat(32));
        send(apns, PHONE);
        assertEquals(2, waiting.get().size());
    }

    @Test
    void a_wait_fails_with_what_has_arrived() throws Exception {
        send(apns, PHONE);
        EmulatorException error =
                assertThrows(EmulatorException.class, () -> apns.waitFor(2, Duration.ofMillis(100)));
        assertEquals("1 of 2 messages have arrived in 100 ms", error.getMessage());
    }

    @Test
    void an_answer_is_given_always_or_some_times() throws Exception {
        String busy = "ef".repeat(32);
        apns.answer(PHONE, "Unregistered");
        apns.answer(busy, "ServiceUnavailable", 1);
        assertEquals(List.of(410, 410), List.of(send(apns, PHONE), send(apns, PHONE)));
        assertEquals(List.of(503, 200), List.of(send(apns, busy), send(apns, busy)));
        assertEquals(new TokenCounts(2, 1, 1, 0), apns.counts(busy));
    }

    @Test
    void the_policy_of_the_start_is_in_force_again_after_a_reset() throws Exception {
        try (ApnsEmulator refusing = new ApnsEmulator().withPolicy(REFUSING).withProgram(withoutProviderTokens())) {
            refusing.start().setPolicy("{}");
            assertEquals(200, send(refusing, PHONE));
            refusing.reset();
            assertEquals(500, send(refusing, PHONE));
            assertEquals(List.of(), apns.messages(), "two emulators share nothing");
        }
    }

    @Test
    void an_error_that_the_service_does_not_have_is_refused() {
        assertThrows(EmulatorException.class, () -> apns.answer(PHONE, "UNREGISTERED"));
    }

    @Test
    void an_emulator_of_one_test_runs_beside_that_of_the_class() {
        assertEquals("emulated-project", ofOneTest.projectId());
        assertTrue(Files.isRegularFile(ofOneTest.credentialFile()));
    }

    @Test
    void a_missing_program_is_named_with_the_remedy() {
        ApnsEmulator missing = new ApnsEmulator().withProgram(folder.resolve("nothing"));
        EmulatorException error = assertThrows(EmulatorException.class, missing::start);
        assertTrue(error.getMessage().endsWith("nothing is not a program: set STENTOR_BIN to the path of stentor"));
    }

    @Test
    void a_policy_that_cannot_be_used_fails_the_start_with_its_reason() {
        ApnsEmulator wrong = new ApnsEmulator().withPolicy("{\"mixx\": 1}");
        EmulatorException error = assertThrows(EmulatorException.class, wrong::start);
        assertTrue(error.getMessage().contains("unknown field `mixx`"), error.getMessage());
    }

    @Test
    void an_emulator_that_was_not_started_says_how_to_start_it() {
        EmulatorException error = assertThrows(EmulatorException.class, () -> new ApnsEmulator().url());
        assertTrue(error.getMessage().contains("@RegisterExtension"));
    }

    @Test
    void an_emulator_that_has_died_is_reported_with_its_code() {
        try (ApnsEmulator dying = new ApnsEmulator().start()) {
            ProcessHandle.of(dying.pid()).orElseThrow().destroyForcibly();
            EmulatorException error =
                    assertThrows(EmulatorException.class, () -> dying.waitFor(1, Duration.ofSeconds(60)));
            assertTrue(error.getMessage().startsWith("stentor emulate has ended with code 137"), error.getMessage());
        }
    }

    @Test
    void an_emulator_ends_with_the_process_that_has_started_it() throws Exception {
        Process killed = new ProcessBuilder(
                        ProcessHandle.current().info().command().orElseThrow(),
                        "-cp", System.getProperty("java.class.path"), Killed.class.getName())
                .start();
        long pid = Long.parseLong(killed.inputReader().readLine());
        Optional<ProcessHandle> emulator = ProcessHandle.of(pid);
        if (emulator.isPresent()) {
            emulator.get().onExit().get(30, TimeUnit.SECONDS);
        }
        assertFalse(ProcessHandle.of(pid).map(ProcessHandle::isAlive).orElse(false));
    }

    /** Starts an emulator, and halts without ending it. */
    static final class Killed {
        public static void main(String[] arguments) {
            System.out.println(new ApnsEmulator().start().pid());
            Runtime.getRuntime().halt(1);
        }
    }
}
