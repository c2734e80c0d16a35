//! Connections of adapters: never to an address that the operator does not allow.

use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use rcgen::KeyPair;
use serde_json::json;
use stentor_core::device::ProviderKind;
use stentor_core::outcome::{Outcome, OutcomeScope, Reason};
use stentor_core::ports::provider::Provider;
use stentor_emulators::{FcmConfig, FcmEmulator, RunningFcm, TlsConfig};
use stentor_http2::Addresses;
use stentor_providers::apns::{Apns, TO_APPS};
use stentor_providers::fcm::Fcm;
use stentor_providers::{Outbound, Setup, refused_host};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::support::{Account, StillClock, allowing, batch, rejected, setup, within};

const ALLOWED: Ipv4Addr = Ipv4Addr::LOCALHOST;
const REFUSED: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
const ADDRESS_REFUSED: Outcome = Outcome::Unsent { reason: Reason::AddressRefused, retry_after: None };

/// A resolver with different addresses at each lookup; the last ones stay.
#[derive(Debug)]
struct Fickle(Mutex<VecDeque<Vec<Ipv4Addr>>>);

impl Fickle {
    fn new(meanings: &[&[Ipv4Addr]]) -> Arc<Self> {
        Arc::new(Self(Mutex::new(meanings.iter().map(|meaning| meaning.to_vec()).collect())))
    }
}

impl Addresses for Fickle {
    fn look_up(&self, _host: &str, port: u16) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
        let mut meanings = self.0.lock().expect("no panic");
        let meaning = if meanings.len() > 1 { meanings.pop_front() } else { meanings.front().cloned() };
        let addresses = meaning.unwrap_or_default().into_iter().map(|ip| (ip, port).into()).collect();
        Box::pin(async { Ok(addresses) })
    }

    fn check(&self, _address: SocketAddr) -> Result<(), String> {
        Ok(())
    }
}

/// An emulator without TLS, and a listener that must not be contacted.
struct Scene {
    emulator: RunningFcm,
    trap: TcpListener,
    clock: Arc<StillClock>,
}

async fn scene() -> Scene {
    let config = FcmConfig { tls: TlsConfig::Plaintext, ..FcmConfig::default() };
    let emulator = FcmEmulator::start(config).await.expect("an emulator");
    let trap = TcpListener::bind((REFUSED, emulator.addr().port())).await.expect("all of 127/8 is ours");
    Scene { emulator, trap, clock: StillClock::new() }
}

impl Scene {
    fn url(&self, host: &str) -> String {
        format!("http://{host}:{}", self.emulator.addr().port())
    }

    fn secret(&self, endpoint: &str, token_uri: &str) -> String {
        let account = Account::new("https://replaced.example/token").json;
        json!({"service_account": account, "endpoint": endpoint, "token_endpoint": token_uri}).to_string()
    }

    /// Opens an adapter that may connect to these networks.
    fn fcm(&self, secret: &str, allowed: &[&str], names: Arc<dyn Addresses>) -> Fcm {
        let outbound = Outbound::with_names(allowing(allowed), names);
        Fcm::open(secret, &Setup { outbound, ..setup(&self.clock) }).expect("a credential")
    }

    async fn send(&self, fcm: &Fcm) -> Outcome {
        within(20, fcm.send(batch(&["a-token".to_owned()], &self.clock))).await.remove(0)
    }

    async fn was_sprung(&self) -> bool {
        // A connection would wait to be accepted.
        tokio::time::timeout(Duration::from_millis(50), self.trap.accept()).await.is_ok()
    }
}

#[tokio::test]
async fn r17_a_token_endpoint_at_a_refused_address_is_not_asked_however_it_is_written() {
    let scene = scene().await;
    for host in ["127.0.0.2", "127.2", "0x7f.2", "2130706434", "127.0.0.2.", "[::ffff:127.0.0.2]"] {
        let secret = scene.secret(&scene.url("127.0.0.1"), &format!("{}/token", scene.url(host)));
        let fcm = scene.fcm(&secret, &["127.0.0.1"], Fickle::new(&[&[ALLOWED]]));
        assert_eq!(scene.send(&fcm).await, ADDRESS_REFUSED, "{host}");
        assert_eq!(within(20, fcm.warm()).await, Some(Reason::AddressRefused), "{host}");
    }
    assert!(!scene.was_sprung().await);
    assert_eq!(scene.emulator.sums().tokens.attempts, 0);
}

#[tokio::test]
async fn r17_a_token_endpoint_whose_name_is_bound_anew_is_not_followed() {
    let scene = scene().await;
    let secret = scene.secret(&scene.url("127.0.0.1"), &format!("{}/token", scene.url("accounts.example")));
    let names = Fickle::new(&[&[REFUSED], &[REFUSED, REFUSED], &[REFUSED, ALLOWED], &[ALLOWED]]);
    let fcm = scene.fcm(&secret, &["127.0.0.1"], names);
    let mut outcomes = Vec::new();
    for _ in 0..3 {
        outcomes.push(scene.send(&fcm).await);
    }
    assert_eq!(outcomes, [ADDRESS_REFUSED, ADDRESS_REFUSED, Outcome::Accepted]);
    assert!(!scene.was_sprung().await);
}

#[tokio::test]
async fn r17_an_endpoint_whose_name_leads_to_refused_addresses_gets_nothing() {
    let scene = scene().await;
    let secret = scene.secret(&scene.url("push.example"), &format!("{}/token", scene.url("127.0.0.1")));
    // The token endpoint is an address, and is not looked up.
    let fcm = scene.fcm(&secret, &["127.0.0.1"], Fickle::new(&[&[REFUSED]]));
    assert_eq!(within(20, fcm.warm()).await, Some(Reason::AddressRefused));
    assert_eq!(scene.send(&fcm).await, ADDRESS_REFUSED);
    assert!(!scene.was_sprung().await);
    assert_eq!(scene.emulator.sums().tokens.attempts, 0);
}

#[tokio::test]
async fn r17_nothing_is_allowed_by_default_and_all_is_well_with_one_word() {
    let scene = scene().await;
    let secret = scene.secret(&scene.url("127.0.0.1"), &format!("{}/token", scene.url("127.0.0.1")));
    let names = || Fickle::new(&[&[ALLOWED]]);
    assert_eq!(scene.send(&scene.fcm(&secret, &[], names())).await, ADDRESS_REFUSED);
    assert_eq!(scene.send(&scene.fcm(&secret, &["private"], names())).await, ADDRESS_REFUSED);
    assert_eq!(scene.send(&scene.fcm(&secret, &["loopback"], names())).await, Outcome::Accepted);
}

/// Answers each request with a redirect to another address.
async fn send_on(listener: TcpListener, to: SocketAddr) {
    while let Ok((mut stream, _)) = listener.accept().await {
        let answer = format!(
            "HTTP/1.1 307 Temporary Redirect\r\nlocation: http://{to}/token\r\ncontent-length: 0\r\n\r\n"
        );
        let mut request = vec![0; 16_384];
        let read = stream.read(&mut request).await;
        if read.is_ok_and(|count| count > 0) {
            let _the_client_may_be_gone = stream.write_all(answer.as_bytes()).await;
        }
    }
}

#[tokio::test]
async fn r17_a_token_endpoint_that_sends_on_is_not_followed() {
    let scene = scene().await;
    let listener = TcpListener::bind((ALLOWED, 0)).await.expect("a port");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(send_on(listener, scene.trap.local_addr().expect("bound")));
    let secret = scene.secret(&scene.url("127.0.0.1"), &format!("http://{address}/token"));
    // Even if the other address is allowed.
    let fcm = scene.fcm(&secret, &["loopback"], Fickle::new(&[&[ALLOWED]]));
    assert_eq!(scene.send(&fcm).await, rejected(Reason::CredentialRefused, OutcomeScope::Credential));
    assert!(!scene.was_sprung().await);
}

#[tokio::test]
async fn r17_apns_goes_to_permitted_addresses_only() {
    let scene = scene().await;
    let secret = json!({"key_p8": KeyPair::generate().expect("a key").serialize_pem(), "key_id": "KEY0123456",
        "team_id": "TEAM012345", "bundle_id": "com.example.app", "endpoint": scene.url("push.example")});
    let outbound = Outbound::with_names(allowing(&["127.0.0.1"]), Fickle::new(&[&[REFUSED]]));
    let apns = Apns::open(&secret.to_string(), &Setup { outbound, ..setup(&scene.clock) }, &TO_APPS);
    let apns = apns.expect("a credential");
    assert_eq!(within(20, apns.warm()).await, Some(Reason::AddressRefused));
    let token = "0".repeat(64);
    assert_eq!(within(20, apns.send(batch(&[token], &scene.clock))).await, [ADDRESS_REFUSED]);
    assert!(!scene.was_sprung().await);
}

#[test]
fn r17_each_host_of_a_credential_is_checked_and_its_field_is_named() {
    let account = |token_uri: &str| Account::new(token_uri).json;
    let refused = |secret: serde_json::Value| {
        let found = refused_host(ProviderKind::Fcm, &secret.to_string(), &allowing(&[])).expect("readable");
        found.map(|found| (found.field, found.refused.address.to_string()))
    };
    let (fine, metadata) = ("https://oauth2.googleapis.com/token", "http://169.254.169.254/latest");
    let named = |field: &str, address: &str| Some((field.to_owned(), address.to_owned()));
    assert_eq!(refused(account(fine)), None);
    assert_eq!(refused(account(metadata)), named("token_uri", "169.254.169.254"));
    assert_eq!(
        refused(json!({"service_account": account(metadata)})),
        named("service_account.token_uri", "169.254.169.254")
    );
    // The field beside the account takes precedence.
    assert_eq!(refused(json!({"service_account": account(metadata), "token_endpoint": fine})), None);
    assert_eq!(
        refused(json!({"service_account": account(fine), "token_endpoint": metadata})),
        named("token_endpoint", "169.254.169.254")
    );
    assert_eq!(
        refused(json!({"service_account": account(fine), "endpoint": "https://[fd00:ec2::254]:443"})),
        named("endpoint", "fd00:ec2::254")
    );
}
