//! Provider tokens: signature, age, team, and the limit on their changes per connection.

use crate::rig::{self, ALERT, Client, hex};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode, get_current_timestamp};
use rcgen::KeyPair;
use serde_json::json;
use std::os::unix::fs::PermissionsExt;
use stentor_emulators::apns::ApnsKey;
use stentor_emulators::{ApnsConfig, ApnsOptions, EmulatorCredential, RunningApns};

struct Signer(KeyPair);

impl Signer {
    fn new() -> Self {
        Self(KeyPair::generate().unwrap())
    }

    fn sign(&self, team: &str, key_id: &str, age_s: u64) -> String {
        let header = Header { kid: Some(key_id.to_owned()), ..Header::new(Algorithm::ES256) };
        let claims = json!({"iss": team, "iat": get_current_timestamp() - age_s});
        let key = EncodingKey::from_ec_pem(self.0.serialize_pem().as_bytes()).unwrap();
        encode(&header, &claims, &key).unwrap()
    }

    /// Signs in DER, as pushy does, and appends `tail` to the signature.
    fn sign_in_der(&self, team: &str, tail: &[u8]) -> String {
        let fixed = self.sign(team, "KEY", 0);
        let (signed, _) = fixed.rsplit_once('.').unwrap();
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &self.0.serialize_der()).unwrap();
        let signature = key.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode([signature.as_ref(), tail].concat()))
    }

    async fn apns(&self) -> RunningApns {
        let key = |team_id: &str, key_id: &str| ApnsKey {
            team_id: team_id.to_owned(),
            key_id: key_id.to_owned(),
            public_key_pem: Some(self.0.public_key_pem()),
        };
        let keys = vec![key("TEAM", "KEY"), key("OTHER", "KEY2")];
        rig::apns_with(ApnsConfig {
            vendor: ApnsOptions { keys, ..ApnsOptions::default() },
            ..ApnsConfig::default()
        })
        .await
    }
}

/// Pushes with a provider token and returns the error reason, or "" if it is accepted.
async fn push(client: &mut Client, jwt: &str) -> String {
    let mut request = client.push_request(&hex(1));
    request.headers_mut().insert("authorization", format!("bearer {jwt}").parse().unwrap());
    let reply = client.send(request, ALERT).await.unwrap();
    if reply.status == 200 { String::new() } else { reply.reason() }
}

#[tokio::test]
async fn a_signed_token_of_the_team_is_accepted_again_and_again() {
    let signer = Signer::new();
    let apns = signer.apns().await;
    let mut client = Client::connect(apns.addr()).await;
    let jwt = signer.sign("TEAM", "KEY", 3000);
    assert_eq!(push(&mut client, &jwt).await, "");
    assert_eq!(push(&mut client, &jwt).await, "");
}

#[tokio::test]
async fn a_push_without_a_token_is_refused() {
    let apns = Signer::new().apns().await;
    let mut client = Client::connect(apns.addr()).await;
    assert_eq!(client.push(&hex(1)).await.unwrap().reason(), "MissingProviderToken");
}

#[tokio::test]
async fn foreign_signatures_keys_and_teams_are_refused() {
    let signer = Signer::new();
    let apns = signer.apns().await;
    let mut client = Client::connect(apns.addr()).await;
    for jwt in [
        Signer::new().sign("TEAM", "KEY", 0),
        signer.sign("TEAM", "NOKEY", 0),
        signer.sign("OTHER", "KEY", 0),
        "not.a.token".to_owned(),
    ] {
        assert_eq!(push(&mut client, &jwt).await, "InvalidProviderToken");
    }
    assert_eq!(push(&mut client, &signer.sign("TEAM", "KEY", 0)).await, "");
}

#[tokio::test]
async fn a_token_older_than_an_hour_has_expired() {
    let signer = Signer::new();
    let apns = signer.apns().await;
    let mut client = Client::connect(apns.addr()).await;
    assert_eq!(push(&mut client, &signer.sign("TEAM", "KEY", 3700)).await, "ExpiredProviderToken");
}

#[tokio::test]
async fn a_second_new_token_on_a_connection_comes_too_soon() {
    let signer = Signer::new();
    let apns = signer.apns().await;
    let mut client = Client::connect(apns.addr()).await;
    assert_eq!(push(&mut client, &signer.sign("TEAM", "KEY", 100)).await, "");
    assert_eq!(push(&mut client, &signer.sign("TEAM", "KEY", 50)).await, "TooManyProviderTokenUpdates");
    let mut other = Client::connect(apns.addr()).await;
    assert_eq!(push(&mut other, &signer.sign("TEAM", "KEY", 50)).await, "");
}

#[tokio::test]
async fn a_connection_belongs_to_one_team() {
    let signer = Signer::new();
    let apns = signer.apns().await;
    let mut client = Client::connect(apns.addr()).await;
    assert_eq!(push(&mut client, &signer.sign("TEAM", "KEY", 0)).await, "");
    assert_eq!(push(&mut client, &signer.sign("OTHER", "KEY2", 0)).await, "InvalidProviderToken");
}

#[tokio::test]
async fn a_signature_in_der_is_as_good_as_one_of_64_bytes() {
    let signer = Signer::new();
    let apns = signer.apns().await;
    let mut client = Client::connect(apns.addr()).await;
    assert_eq!(push(&mut client, &signer.sign_in_der("TEAM", &[])).await, "");
    assert_eq!(apns.counts(&hex(1)).accepted, 1);
}

#[tokio::test]
async fn signatures_in_der_are_checked_to_their_last_byte() {
    let signer = Signer::new();
    let apns = signer.apns().await;
    let mut client = Client::connect(apns.addr()).await;
    let (good, other) = (signer.sign_in_der("TEAM", &[]), signer.sign("TEAM", "KEY", 1));
    let (claims_of_other, signature) = (other.rsplit_once('.').unwrap().0, good.rsplit_once('.').unwrap().1);
    for jwt in [
        Signer::new().sign_in_der("TEAM", &[]),
        signer.sign_in_der("OTHER", &[]),
        signer.sign_in_der("TEAM", &[0]),
        format!("{claims_of_other}.{signature}"),
        format!("{}.", good.rsplit_once('.').unwrap().0),
    ] {
        assert_eq!(push(&mut client, &jwt).await, "InvalidProviderToken");
    }
    assert_eq!(apns.counts(&hex(1)).accepted, 0);
}

#[tokio::test]
async fn only_the_signing_key_that_the_emulator_has_made_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let credential = Some(folder.path().join("AuthKey.p8"));
    let vendor = ApnsOptions { credential, ..ApnsOptions::default() };
    let apns = rig::apns_with(ApnsConfig { vendor, ..ApnsConfig::default() }).await;
    let Some(EmulatorCredential::SigningKey { file, key_id, team_id }) = apns.credential() else {
        panic!("{:?}", apns.credential())
    };
    let made = Signer(KeyPair::from_pem(&std::fs::read_to_string(file).unwrap()).unwrap());
    let mut client = Client::connect(apns.addr()).await;
    assert_eq!(push(&mut client, &Signer::new().sign(team_id, key_id, 0)).await, "InvalidProviderToken");
    assert_eq!(push(&mut client, &made.sign(team_id, key_id, 0)).await, "");
    assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
}
