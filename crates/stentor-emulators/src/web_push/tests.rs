//! Encryption against the example of RFC 8291, an identity against that of RFC 8292, synthetic subscriptions, and content that is damaged.

use super::content::SealedMessage;
use super::keys::SubscriptionKeys;
use super::policy::{BAD_AUDIENCE, BAD_EXPIRATION, BAD_SIGNATURE};
use super::synthetic::{SyntheticSubscriptions, synthetic_auth, synthetic_number, synthetic_token};
use super::vapid::{RequestOrigin, VapidSession, VapidVerifier};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::HeaderValue;

/// The example of RFC 8291, section 5 and appendix A.
const PRIVATE_KEY: &str = "q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94";
const PUBLIC_KEY: &str =
    "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4";
const AUTH: &str = "BTBZMqHH6r4Tts7J_aSIgg";
const BODY: &str = "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN";
const TEXT: &str = "When I grow up, I want to be a watermelon";
/// The example of RFC 8292, section 2.4, which expired in 2016.
const IDENTITY: &str = "vapid t=eyJ0eXAiOiJKV1QiLCJhbGciOiJFUzI1NiJ9.eyJhdWQiOiJodHRwczovL3B1c2guZXhhbXBsZS5uZXQiLCJleHAiOjE0NTM1MjM3NjgsInN1YiI6Im1haWx0bzpwdXNoQGV4YW1wbGUuY29tIn0.i3CYb7t4xfxCDquptFOepC9GAu_HLGkMlMuCGSK2rpiUfnK9ojFwDXb1JrErtmysazNjjvW2L9OkSSHzvoD1oA, k=BA1Hxzyi1RUM1b5wjxsn7nGxAszw2u61m164i3MrAIxHF6YK5h4SDYic-dRuU_RCPCfA5aq9ojSwk5Y2EmClBPs";

fn bytes(text: &str) -> Vec<u8> {
    URL_SAFE_NO_PAD.decode(text).unwrap()
}

fn example_keys() -> SubscriptionKeys {
    SubscriptionKeys::of_private(&bytes(PRIVATE_KEY)).unwrap()
}

fn open(body: &[u8], auth: &[u8]) -> Result<Vec<u8>, &'static str> {
    SealedMessage::read(body).ok_or("no header")?.open(&example_keys(), auth)
}

#[test]
fn the_example_of_rfc_8291_is_decrypted() {
    assert_eq!(example_keys().public(), bytes(PUBLIC_KEY));
    assert_eq!(open(&bytes(BODY), &bytes(AUTH)), Ok(TEXT.as_bytes().to_vec()));
}

#[test]
fn the_signature_of_the_example_of_rfc_8292_is_valid_and_its_time_is_over() {
    let check = |identity: &str, authority: &str| {
        let origin = RequestOrigin { scheme: "https", authority, other: None };
        let header = HeaderValue::from_str(identity).unwrap();
        VapidVerifier::default().check(&mut VapidSession::default(), &header, origin).map(|_| ())
    };
    assert_eq!(check(IDENTITY, "push.example.net"), Err(BAD_EXPIRATION));
    assert_eq!(check(IDENTITY, "push.example.net:443"), Err(BAD_EXPIRATION));
    assert_eq!(check(IDENTITY, "push.example.net:8443"), Err(BAD_AUDIENCE));
    assert_eq!(check(&IDENTITY.replace("i3CY", "i3CZ"), "push.example.net"), Err(BAD_SIGNATURE));
}

#[test]
fn no_changed_byte_of_a_message_is_overlooked() {
    let (body, auth) = (bytes(BODY), bytes(AUTH));
    // A larger record size changes nothing: it is not part of what is encrypted.
    let harmless = |at: &usize| (16..20).contains(at);
    for at in (0..body.len()).filter(|at| !harmless(at)) {
        let mut damaged = body.clone();
        damaged[at] ^= 1;
        assert!(open(&damaged, &auth).is_err(), "byte {at}");
    }
    assert!(open(&body, &[0; 16]).is_err(), "another secret");
}

#[test]
fn a_body_without_the_whole_header_is_refused() {
    let body = bytes(BODY);
    let first_record = 16 + 5 + 65;
    for length in 0..=first_record + 16 {
        assert!(SealedMessage::read(&body[..length]).is_none(), "{length} bytes");
    }
    assert!(SealedMessage::read(&body[..first_record + 17]).is_some());
    for (at, byte) in [(20, 64), (20, 0), (21, 2)] {
        let mut other = body.clone();
        other[at] = byte;
        assert!(SealedMessage::read(&other).is_none(), "{byte} at {at}");
    }
    let mut small_records = body;
    small_records[16..20].copy_from_slice(&17_u32.to_be_bytes());
    assert!(SealedMessage::read(&small_records).is_none());
}

#[test]
fn a_message_of_two_records_is_not_one_of_web_push() {
    let mut body = bytes(BODY);
    let record_bytes = body.len() - 16 - 5 - 65;
    body[16..20].copy_from_slice(&(record_bytes as u32 - 1).to_be_bytes());
    assert_eq!(open(&body, &bytes(AUTH)), Err("a message of Web Push has one record"));
}

#[test]
fn keys_follow_from_seed_and_name() {
    let public = |seed, name: &[u8]| SubscriptionKeys::derive(seed, name).unwrap().public().to_vec();
    assert_eq!(public(1, b"a"), public(1, b"a"));
    assert_ne!(public(1, b"a"), public(1, b"b"));
    assert_ne!(public(1, b"a"), public(2, b"a"));
}

#[test]
fn a_synthetic_subscription_is_recognized_by_its_path_and_by_its_last_letters() {
    let subscriptions = SyntheticSubscriptions::new("https://localhost:8443/", 7).unwrap();
    for n in [0, 1, 17, 1_000_000, u64::MAX] {
        let path = subscriptions.path_token(n);
        assert_eq!((synthetic_number(7, &path), synthetic_number(8, &path)), (Some(n), None));
        let token = subscriptions.token(n);
        assert_eq!(token, synthetic_token("https://localhost:8443", n, 7).unwrap());
        let (endpoint, keys) = token.split_once("#p256dh=").unwrap();
        assert_eq!(endpoint, format!("https://localhost:8443/push/{path}"));
        let (p256dh, auth) = keys.split_once("&auth=").unwrap();
        assert_eq!((p256dh.len(), auth.len()), (87, 22));
        assert_eq!(bytes(auth), synthetic_auth(7, n));
        assert_eq!(&bytes(auth)[13..], &n.to_be_bytes()[5..]);
    }
    let path = subscriptions.path_token(17);
    for other in [path.to_uppercase(), path.replace("-17", "-017"), path.replace("-17", "-+17")] {
        assert_eq!(synthetic_number(7, &other), None, "{other}");
    }
}
