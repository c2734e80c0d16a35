//! Helpers of the tests: keys, credentials, messages, batches, and a manual clock.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_lc_rs::encoding::AsDer;
use aws_lc_rs::rsa::{KeyPair, KeySize};
use aws_lc_rs::signature::KeyPair as _;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use stentor_core::chunk::TokenList;
use stentor_core::id::{AppId, DeviceId, MessageId};
use stentor_core::message::{Content, Message, MessageSpec, Notification, Priority, Ttl};
use stentor_core::outbound::OutboundPolicy;
use stentor_core::outcome::{Outcome, OutcomeScope, Reason};
use stentor_core::ports::clock::Clock;
use stentor_core::ports::provider::Batch;
use stentor_core::target::Target;
use stentor_core::time::Timestamp;
use stentor_emulators::policy::{Script, ScriptStep, ScriptedAnswer, ServiceError};
use stentor_providers::{Limits, Outbound, Setup};

/// A manual clock; it starts near the present, because the emulators check signed times.
pub(crate) struct StillClock(AtomicI64);

impl StillClock {
    pub(crate) fn new() -> Arc<Self> {
        Self::minutes_ago(0)
    }

    pub(crate) fn minutes_ago(minutes: i64) -> Arc<Self> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_millis();
        Arc::new(Self(AtomicI64::new(now as i64 - minutes * 60_000)))
    }

    pub(crate) fn advance(&self, span: Duration) {
        self.0.fetch_add(span.as_millis() as i64, Ordering::Relaxed);
    }
}

impl Clock for StillClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::Relaxed))
    }
}

/// Allows these networks in addition to the public internet.
pub(crate) fn allowing(networks: &[&str]) -> OutboundPolicy {
    OutboundPolicy::new(networks.iter().map(|text| text.parse().expect(text)).collect())
}

pub(crate) fn setup(clock: &Arc<StillClock>) -> Setup {
    let limits = Limits { max_connections: 4, request_timeout_ms: 2_000, ..Limits::default() };
    Setup { clock: Arc::<StillClock>::clone(clock), limits, outbound: Outbound::new(allowing(&["loopback"])) }
}

/// Generated once, because it takes long.
static RSA_KEY: LazyLock<KeyPair> = LazyLock::new(|| KeyPair::generate(KeySize::Rsa2048).expect("a key"));

/// A service account in Google's format, with a generated key.
pub(crate) struct Account {
    pub(crate) json: Value,
    pub(crate) public_key_pem: String,
}

impl Account {
    pub(crate) fn new(token_uri: &str) -> Self {
        let key = &*RSA_KEY;
        let private: aws_lc_rs::encoding::Pkcs8V1Der<'_> = key.as_der().expect("PKCS#8");
        let public: aws_lc_rs::encoding::PublicKeyX509Der<'_> = key.public_key().as_der().expect("SPKI");
        let json = json!({
            "type": "service_account",
            "project_id": "a-project",
            "private_key_id": "0123456789abcdef",
            "private_key": pem("PRIVATE KEY", private.as_ref()),
            "client_email": "sender@a-project.iam.gserviceaccount.com",
            "client_id": "1",
            "auth_uri": "https://accounts.google.com/o/oauth2/auth",
            "token_uri": token_uri,
            "universe_domain": "googleapis.com",
        });
        Self { json, public_key_pem: pem("PUBLIC KEY", public.as_ref()) }
    }
}

fn pem(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let lines: Vec<_> = text.as_bytes().chunks(64).map(|line| String::from_utf8_lossy(line)).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

/// Returns a message with a notification.
pub(crate) fn message(number: u64, ttl_seconds: u64, clock: &StillClock) -> Arc<Message> {
    let notification = Notification { title: Some("Hi".into()), ..Notification::default() };
    let data = BTreeMap::from([("n".to_owned(), number.to_string())]);
    let spec = MessageSpec {
        target: Target::Everyone,
        content: Content { notification: Some(notification), data, ..Content::default() },
        priority: Priority::High,
        ttl: Ttl::from_seconds(ttl_seconds).expect("fits"),
        collapse_key: None,
    };
    let now = clock.now();
    let (id, app) = (MessageId::from_raw(number), AppId::from_raw(1));
    Arc::new(Message { id, app, spec, created_at: now, due_at: now, occurrence: None })
}

pub(crate) fn batch(tokens: &[String], clock: &StillClock) -> Batch {
    let mut list = TokenList::default();
    tokens.iter().for_each(|token| list.push(token));
    let devices = (1..=tokens.len() as u64).map(DeviceId::from_raw).collect();
    Batch {
        message: message(7, 3_600, clock),
        now: clock.now(),
        devices,
        tokens: list,
        repeated: false,
        answered_before: false,
    }
}

/// A script that answers one token with one error, always.
pub(crate) fn always(token: &str, refusal: ServiceError) -> Script {
    Script { token: Some(token.to_owned()), then: ScriptedAnswer::Error(refusal), ..Script::default() }
}

/// A script that answers one token with one error once, then accepts.
pub(crate) fn once(token: &str, verdict: ScriptedAnswer) -> Script {
    let answers = vec![ScriptStep { answer: verdict, times: 1 }];
    Script { token: Some(token.to_owned()), answers, ..Script::default() }
}

pub(crate) fn rejected(reason: Reason, scope: OutcomeScope) -> Outcome {
    Outcome::Rejected { reason, scope }
}

pub(crate) fn unavailable(retry_after_s: Option<u64>) -> Outcome {
    let retry_after = retry_after_s.map(Duration::from_secs);
    Outcome::Unavailable { reason: Reason::Unavailable, scope: OutcomeScope::Service, retry_after }
}

/// Fails the test if it hangs.
pub(crate) async fn within<T>(seconds: u64, work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(seconds), work).await.expect("ends in time")
}
