//! The adapter to Huawei Push Kit, against its emulator.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use stentor_core::device::ProviderKind;
use stentor_core::outcome::{Outcome, OutcomeScope, Reason};
use stentor_core::ports::provider::{Batch, Provider};
use stentor_emulators::faults::InjectedFault;
use stentor_emulators::hms::{HmsAuth, HmsClient};
use stentor_emulators::policy::{Policy, ResetCode, Script, ScriptedAnswer, ServiceError, Stall};
use stentor_emulators::{HmsConfig, HmsEmulator, HmsOptions, RunningHms, TlsConfig};
use stentor_providers::hms::Hms;

use crate::support::{self, StillClock, always, once, rejected, setup, unavailable, within};

const CLIENT: &str = "100000001";
const SECRET: &str = "a-client-secret";
const PROJECT: &str = "700000000000000001";

struct Scene {
    emulator: RunningHms,
    provider: Hms,
    clock: Arc<StillClock>,
}

async fn start(policy: Policy) -> Scene {
    start_with(HmsConfig { policy, ..HmsConfig::default() }, SECRET).await
}

/// Starts an emulator that knows one client, and an adapter that bears its id and this secret.
async fn start_with(config: HmsConfig, secret: &str) -> Scene {
    let client = HmsClient {
        client_id: CLIENT.to_owned(),
        client_secret: SECRET.to_owned(),
        project_id: PROJECT.to_owned(),
    };
    let auth = HmsAuth { clients: vec![client], ..config.vendor.auth };
    let vendor = HmsOptions { projects: vec![PROJECT.to_owned()], auth };
    let emulator = HmsEmulator::start(HmsConfig { vendor, ..config }).await.expect("an emulator");
    let clock = StillClock::new();
    let provider = open(&emulator, secret, &clock);
    Scene { emulator, provider, clock }
}

fn open(emulator: &RunningHms, client_secret: &str, clock: &Arc<StillClock>) -> Hms {
    let scheme = if emulator.ca_pem().is_some() { "https" } else { "http" };
    let endpoint = format!("{scheme}://{}", emulator.addr());
    let secret = json!({
        "client_secret": client_secret,
        "client_id": CLIENT,
        "project_id": PROJECT,
        "endpoint": endpoint,
        "token_endpoint": format!("{endpoint}/oauth2/v3/token"),
        "ca_pem": emulator.ca_pem(),
    });
    Hms::open(&secret.to_string(), &setup(clock)).expect("a credential")
}

/// Returns a batch of a notification that has all that Push Kit requires.
fn batch(tokens: &[String], clock: &StillClock) -> Batch {
    let mut batch = support::batch(tokens, clock);
    let message = Arc::make_mut(&mut batch.message);
    message.spec.content.notification.as_mut().expect("a notification").body = Some("there".to_owned());
    batch
}

impl Scene {
    async fn send(&self, tokens: &[String]) -> Vec<Outcome> {
        within(60, self.provider.send(batch(tokens, &self.clock))).await
    }

    async fn send_one(&self, token: &str) -> Outcome {
        self.send(&[token.to_owned()]).await.remove(0)
    }

    fn requests(&self) -> u64 {
        self.emulator.sums().wire.requests
    }
}

fn tokens(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("hms-token:{n}")).collect()
}

fn dead() -> Outcome {
    Outcome::Unregistered { reason: Reason::Unregistered, since: None }
}

fn invalid() -> Script {
    let then = ScriptedAnswer::Error(ServiceError::new("80300007"));
    Script { prefix: Some("gone".to_owned()), then, ..Script::default() }
}

#[tokio::test]
async fn a_thousand_devices_are_reached_with_one_request() {
    let scene = start(Policy::default()).await;
    let tokens = tokens(1_000);
    assert_eq!(scene.send(&tokens).await, vec![Outcome::Accepted; 1_000]);
    assert_eq!(scene.requests(), 2, "one for the access token");
    for token in &tokens {
        assert_eq!(scene.emulator.counts(token).accepted, 1, "{token}");
    }
}

#[tokio::test]
async fn a_larger_chunk_is_divided_and_its_outcomes_stand_in_their_places() {
    let scene = start(Policy { scripts: vec![invalid()], ..Policy::default() }).await;
    let mut tokens = tokens(2_500);
    let gone = [0, 999, 1_000, 2_499];
    gone.into_iter().for_each(|place| tokens[place] = format!("gone-{place}"));
    let outcomes = scene.send(&tokens).await;
    assert_eq!(scene.requests(), 1 + 3);
    for (place, outcome) in outcomes.iter().enumerate() {
        let wanted = if gone.contains(&place) { dead() } else { Outcome::Accepted };
        assert_eq!(*outcome, wanted, "{place}");
    }
    assert_eq!(scene.emulator.sums().tokens.accepted, 2_496);
}

#[tokio::test]
async fn tokens_that_are_invalid_beside_valid_ones_are_dead_and_alone_they_are_only_invalid() {
    let scene = start(Policy { scripts: vec![invalid()], ..Policy::default() }).await;
    let some = ["gone-1", "fine", "no token{}", "gone-2"].map(str::to_owned);
    assert_eq!(scene.send(&some).await, [dead(), Outcome::Accepted, dead(), dead()]);
    let all = ["gone-1", "gone-2"].map(str::to_owned);
    assert_eq!(scene.send(&all).await, vec![rejected(Reason::InvalidToken, OutcomeScope::Device); 2]);
}

#[tokio::test]
async fn every_error_of_the_table_becomes_its_outcome() {
    let credential = rejected(Reason::CredentialRefused, OutcomeScope::Credential);
    let payload = rejected(Reason::InvalidPayload, OutcomeScope::Payload);
    let throttled = Outcome::Throttled { scope: OutcomeScope::Credential, retry_after: None };
    let rows = [
        ("80100001", payload.clone()),
        ("80100003", payload.clone()),
        ("80100004", payload.clone()),
        ("80100013", payload.clone()),
        ("80100016", payload.clone()),
        ("80100017", throttled.clone()),
        ("80100018", payload.clone()),
        ("80200001", credential.clone()),
        ("80300002", credential.clone()),
        ("80300007", rejected(Reason::InvalidToken, OutcomeScope::Device)),
        ("80300008", rejected(Reason::PayloadTooLarge, OutcomeScope::Payload)),
        ("80300010", payload.clone()),
        ("80300011", payload),
        ("80300013", credential),
        ("80600003", unavailable(None)),
        ("81000001", unavailable(None)),
        ("502", unavailable(None)),
        ("503", throttled),
    ];
    let scripts = rows.iter().map(|(code, _)| always(code, ServiceError::new(*code))).collect();
    let scene = start(Policy { scripts, ..Policy::default() }).await;
    for (code, wanted) in rows {
        assert_eq!(scene.send_one(code).await, wanted, "{code}");
    }
}

#[tokio::test]
async fn a_request_that_is_refused_as_a_whole_is_refused_for_each_of_its_tokens() {
    let wait = ServiceError::new("503").retry_after_s(17);
    let scene = start(Policy { scripts: vec![always("busy", wait)], ..Policy::default() }).await;
    let both = ["fine", "busy"].map(str::to_owned);
    let throttled =
        Outcome::Throttled { scope: OutcomeScope::Credential, retry_after: Some(Duration::from_secs(17)) };
    assert_eq!(scene.send(&both).await, vec![throttled; 2]);
    assert_eq!((scene.emulator.counts("fine").accepted, scene.emulator.counts("fine").rejected), (0, 1));
}

#[tokio::test]
async fn a_service_that_asks_to_wait_gets_no_more_requests_of_a_batch() {
    let then = ScriptedAnswer::Error(ServiceError::new("503").retry_after_s(9));
    let busy = Script { prefix: Some(String::new()), then, ..Script::default() };
    let scene = start(Policy { scripts: vec![busy], ..Policy::default() }).await;
    let wait = Some(Duration::from_secs(9));
    let throttled = Outcome::Throttled { scope: OutcomeScope::Credential, retry_after: wait };
    let unsent = Outcome::Unsent { reason: Reason::Throttled, retry_after: wait };
    // One answer holds for a whole request: ten of them halt the client, for half a second each time.
    for number in 0..10 {
        assert_eq!(scene.send_one("busy").await, throttled, "{number}");
    }
    let mut next = scene.send_one("busy").await;
    while next == throttled {
        next = scene.send_one("busy").await;
    }
    assert_eq!(next, unsent);
}

#[tokio::test]
async fn an_access_token_that_is_refused_is_replaced_once_and_its_request_sent_again() {
    for code in ["80200001", "80200003"] {
        let scripts = vec![once("late", ScriptedAnswer::Error(ServiceError::new(code)))];
        let scene = start(Policy { scripts, ..Policy::default() }).await;
        assert_eq!(scene.send(&["fine", "late"].map(str::to_owned)).await, vec![Outcome::Accepted; 2]);
        assert_eq!(scene.emulator.counts("late").attempts, 2);
        assert_eq!(scene.requests(), 4, "two for access tokens");
    }
}

#[tokio::test]
async fn an_access_token_that_has_expired_is_replaced() {
    let auth = HmsAuth { token_life_s: 0, ..HmsAuth::default() };
    let vendor = HmsOptions { auth, ..HmsOptions::default() };
    let scene = start_with(HmsConfig { vendor, ..HmsConfig::default() }, SECRET).await;
    let expired = Outcome::Unavailable {
        reason: Reason::CredentialRefused,
        scope: OutcomeScope::Credential,
        retry_after: None,
    };
    // Each of its tokens has expired when it is given out: a second one is tried, and no third.
    assert_eq!(scene.send_one("a").await, expired);
    assert_eq!((scene.requests(), scene.emulator.sums().tokens.attempts), (4, 0));
}

#[tokio::test]
async fn one_access_token_serves_until_it_is_renewed_ahead_of_its_end() {
    let auth = HmsAuth { token_life_s: 100, ..HmsAuth::default() };
    let vendor = HmsOptions { auth, ..HmsOptions::default() };
    let scene = start_with(HmsConfig { vendor, ..HmsConfig::default() }, SECRET).await;
    scene.send(&tokens(3)).await;
    assert_eq!(scene.requests(), 1 + 1, "one for the access token");
    scene.clock.advance(Duration::from_secs(75));
    scene.send(&tokens(2)).await;
    assert_eq!(scene.requests(), 2 + 1, "not yet at four fifths of its life");
    scene.clock.advance(Duration::from_secs(10));
    assert_eq!(scene.send_one("a").await, Outcome::Accepted);
    within(20, async {
        while scene.requests() < 3 + 2 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_client_that_the_token_endpoint_refuses_parks_the_credential() {
    let scene = start_with(HmsConfig::default(), "another-secret").await;
    let outcomes = scene.send(&tokens(2)).await;
    assert_eq!(outcomes, vec![rejected(Reason::CredentialRefused, OutcomeScope::Credential); 2]);
    assert_eq!(scene.emulator.sums().tokens.attempts, 0, "no message was sent in vain");
    let trouble = within(20, scene.provider.check()).await.expect_err("refused");
    let words = "refuses the OAuth 2.0 client: 1101 invalid client_secret";
    assert!(trouble.to_string().ends_with(words), "{trouble}");
    assert!(!trouble.to_string().contains("another-secret"), "{trouble}");
}

#[tokio::test]
async fn a_batch_that_is_cut_off_leaves_the_requests_that_were_written_in_doubt() {
    let stall = Some(Stall { all: true, ..Stall::default() });
    let scene = start(Policy { stall, ..Policy::default() }).await;
    let tokens = tokens(3);
    let arrived = async {
        while scene.emulator.sums().tokens.attempts < 3 {
            tokio::task::yield_now().await;
        }
    };
    let sent = batch(&tokens, &scene.clock);
    let sending = scene.provider.send_until(sent, Box::new(drop), Box::pin(arrived));
    assert_eq!(within(20, sending).await, vec![Outcome::Unknown; 3]);
}

#[tokio::test]
async fn a_refused_stream_goes_again_and_a_broken_one_leaves_each_of_its_tokens_in_doubt() {
    let scripts = vec![
        once("refused", ScriptedAnswer::Reset(ResetCode::RefusedStream)),
        once("broken", ScriptedAnswer::Reset(ResetCode::InternalError)),
    ];
    let scene = start(Policy { scripts, ..Policy::default() }).await;
    assert_eq!(scene.send(&["refused", "a"].map(str::to_owned)).await, vec![Outcome::Accepted; 2]);
    assert_eq!(scene.send(&["broken", "b"].map(str::to_owned)).await, vec![Outcome::Unknown; 2]);
}

#[tokio::test]
async fn a_stalled_answer_is_unknown_and_a_service_that_is_gone_gets_nothing() {
    let Scene { emulator, provider, clock } = start(Policy::default()).await;
    let one = [String::from("token")];
    assert_eq!(within(20, provider.send(batch(&one, &clock))).await, [Outcome::Accepted]);
    emulator.inject(InjectedFault::Stall { on: true });
    assert_eq!(within(20, provider.send(batch(&one, &clock))).await, [Outcome::Unknown]);
    emulator.stop().await;
    let unsent = Outcome::Unsent { reason: Reason::Unavailable, retry_after: None };
    assert_eq!(within(20, provider.send(batch(&one, &clock))).await, [unsent]);
}

#[tokio::test]
async fn plain_http_2_works_for_trials_and_the_activity_is_counted_in_deliveries() {
    let scene = start_with(HmsConfig { tls: TlsConfig::Plaintext, ..HmsConfig::default() }, SECRET).await;
    assert_eq!(within(20, scene.provider.warm()).await, None);
    let before = scene.provider.stats().inflight_limit;
    assert_eq!(scene.send(&tokens(500)).await, vec![Outcome::Accepted; 500]);
    assert!(scene.provider.stats().inflight_limit >= 250 * before, "{:?}", scene.provider.stats());
    within(20, scene.provider.close()).await;
    assert_eq!(scene.provider.stats().connections, 0);
}

#[test]
fn a_preview_has_the_type_of_content_that_is_sent() {
    let secret = json!({"client_secret": SECRET, "client_id": CLIENT, "project_id": PROJECT}).to_string();
    let preview = stentor_providers::descriptor(ProviderKind::Hms).preview.expect("a preview");
    let shown = preview(&secret, &support::message(7, 3_600, &StillClock::new())).expect("a request");
    let content_type = ("content-type".to_owned(), "application/json; charset=UTF-8".to_owned());
    assert_eq!(shown.headers[0], content_type);
    assert!(shown.body.contains(r#""token":["{token}"]"#), "{}", shown.body);
}
