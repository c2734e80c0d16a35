//! The adapter to WNS, against a small push service that answers as a test says.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::json;
use stentor_core::device::ProviderKind;
use stentor_core::outcome::{Outcome, OutcomeScope, Reason};
use stentor_core::ports::provider::Provider;
use stentor_providers::wns::Wns;

use crate::push_service::{PushAnswer, PushService, Received};
use crate::support::{StillClock, batch, rejected, setup, within};

const TOKEN_PATH: &str = "/tenant/oauth2/v2.0/token";

/// Starts WNS with its token endpoint: each access token has the next number.
async fn start(
    answer: impl Fn(&Received) -> Option<(u16, &'static str)> + Send + Sync + 'static,
) -> PushService {
    let issued = Mutex::new(0);
    PushService::start_with_bodies(move |request| -> PushAnswer {
        if request.path != TOKEN_PATH {
            return answer(request).map(|(status, more)| (status, more, String::new()));
        }
        let mut issued = issued.lock();
        *issued += 1;
        let grant =
            json!({"access_token": format!("token-{issued}"), "expires_in": 86_400, "token_type": "bearer"});
        Some((200, "content-type: application/json\r\n", grant.to_string()))
    })
    .await
}

fn provider(service: &PushService, clock: &Arc<StillClock>) -> Wns {
    let secret = json!({
        "tenant_id": "tenant",
        "client_id": "app-1",
        "client_secret": "s~cret",
        "token_endpoint": format!("{}{TOKEN_PATH}", service.origin),
    });
    Wns::open(&secret.to_string(), &setup(clock)).expect("a credential")
}

fn channels(service: &PushService, names: &[&str]) -> Vec<String> {
    names.iter().map(|name| format!("{}/?token={name}", service.origin)).collect()
}

#[tokio::test]
async fn a_toast_goes_to_every_channel_with_one_access_token() {
    let service = start(|_| Some((200, "x-wns-status: received\r\n"))).await;
    let clock = StillClock::new();
    let names: Vec<String> = (0..100).map(|n| n.to_string()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let tokens = channels(&service, &names);
    let outcomes = within(30, provider(&service, &clock).send(batch(&tokens, &clock))).await;
    assert_eq!(outcomes, vec![Outcome::Accepted; 100]);
    let received = service.received();
    let (asked, pushed): (Vec<_>, Vec<_>) = received.iter().partition(|request| request.path == TOKEN_PATH);
    assert_eq!((asked.len(), pushed.len()), (1, 100));
    let form = String::from_utf8(asked[0].body.clone()).expect("a form");
    let expected = "grant_type=client_credentials&client_id=app-1&client_secret=s%7Ecret\
                    &scope=https%3A%2F%2Fwns.windows.com%2F.default";
    assert_eq!(form.replace('~', "%7E"), expected);
    for request in pushed {
        assert_eq!(request.headers["authorization"], "Bearer token-1");
        assert_eq!(request.headers["x-wns-type"], "wns/toast");
        assert!(String::from_utf8_lossy(&request.body).contains("<text>Hi</text>"));
    }
}

#[tokio::test]
async fn every_answer_becomes_its_outcome_in_its_place() {
    let service = start(|request| {
        let (_, name) = request.path.split_once("token=")?;
        match name.split_once('-') {
            Some(("200", "dropped")) => Some((200, "x-wns-status: dropped\r\n")),
            Some(("200", _)) => Some((200, "x-wns-status: channelthrottled\r\n")),
            _ => Some((name.parse().ok()?, "retry-after: 7\r\n")),
        }
    })
    .await;
    let clock = StillClock::new();
    let gone = || Outcome::Unregistered { reason: Reason::Unregistered, since: None };
    let throttled = |seconds: Option<u64>| Outcome::Throttled {
        scope: OutcomeScope::Device,
        retry_after: seconds.map(Duration::from_secs),
    };
    let expected = [
        ("200", Outcome::Accepted),
        ("200-dropped", rejected(Reason::Dropped, OutcomeScope::Device)),
        ("200-throttled", throttled(None)),
        ("403", rejected(Reason::SenderMismatch, OutcomeScope::Device)),
        ("404", gone()),
        ("410", gone()),
        ("406", throttled(Some(7))),
        ("413", rejected(Reason::PayloadTooLarge, OutcomeScope::Device)),
        ("400", rejected(Reason::InvalidPayload, OutcomeScope::Payload)),
    ];
    let tokens = channels(&service, &expected.each_ref().map(|(name, _)| *name));
    let outcomes = within(30, provider(&service, &clock).send(batch(&tokens, &clock))).await;
    assert_eq!(outcomes, expected.map(|(_, outcome)| outcome));
}

#[tokio::test]
async fn requests_with_an_access_token_that_has_ended_go_again_with_a_new_one() {
    let service = start(|request| {
        let is_old = request.headers["authorization"] == "Bearer token-1";
        Some((if is_old { 401 } else { 200 }, ""))
    })
    .await;
    let clock = StillClock::new();
    let tokens = channels(&service, &["a", "b"]);
    let outcomes = within(30, provider(&service, &clock).send(batch(&tokens, &clock))).await;
    assert_eq!(outcomes, vec![Outcome::Accepted; 2]);
}

#[tokio::test]
async fn without_an_access_token_nothing_is_sent_and_the_lane_learns_why() {
    let service = PushService::start(|_| Some((400, ""))).await;
    let clock = StillClock::new();
    let tokens = channels(&service, &["a"]);
    let provider = provider(&service, &clock);
    let outcomes = within(30, provider.send(batch(&tokens, &clock))).await;
    assert_eq!(outcomes, [rejected(Reason::CredentialRefused, OutcomeScope::Credential)]);
    assert!(service.received().iter().all(|request| request.path == TOKEN_PATH));
    let trouble = provider.check().await.expect_err("it does not work");
    assert!(trouble.cause.contains("refuses the app registration"), "{trouble}");
}

#[tokio::test]
async fn a_preview_shows_the_request_that_is_sent() {
    let service = start(|_| Some((200, "x-wns-status: received\r\n"))).await;
    let clock = StillClock::new();
    let batch = batch(&channels(&service, &["one"]), &clock);
    let secret = json!({"tenant_id": "tenant", "client_id": "app-1", "client_secret": "s~cret"}).to_string();
    let preview = stentor_providers::descriptor(ProviderKind::Wns).preview.expect("a preview");
    let shown = preview(&secret, &batch.message).expect("a request");
    assert_eq!(within(30, provider(&service, &clock).send(batch)).await, [Outcome::Accepted]);
    let received = service.received();
    let sent = received.iter().find(|request| request.path != TOKEN_PATH).expect("a request");
    assert_eq!(shown.body.as_bytes(), sent.body);
    for (name, value) in shown.headers.iter().filter(|(name, _)| name != "authorization") {
        assert_eq!(&sent.headers[name], value, "{name}");
    }
}
