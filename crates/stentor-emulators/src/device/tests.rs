//! Tests of stored messages and of their delivery when the device connects.

use super::*;

fn devices() -> (Devices, String) {
    let devices = Devices::new(TokenKind::Installation, 1);
    let token = devices.register(TokenRegistration::default());
    (devices, token)
}

fn deliver(devices: &Devices, token: &str, id: usize, storage: Storage) {
    let message = DeviceMessage { message_id: id.to_string(), ..DeviceMessage::default() };
    devices.deliver(Delivery {
        devices: vec![token_hash(token.as_bytes())],
        tokens: Vec::new(),
        target: None,
        message,
        storage,
    });
}

fn later() -> u64 {
    now_ms() + 60_000
}

fn received(devices: &Devices, token: &str) -> Vec<String> {
    let mut messages = devices.listen(token).unwrap();
    std::iter::from_fn(|| messages.try_recv().ok()).map(|message| message.message_id).collect()
}

#[test]
fn issued_tokens_look_like_the_real_ones_and_differ() {
    let (devices, token) = devices();
    assert_eq!((token.len(), &token[22..29]), (163, ":APA91b"));
    assert_ne!(token, devices.register(TokenRegistration::default()));
    let apple = Devices::new(TokenKind::Hex64, 1).register(TokenRegistration::default());
    assert!(apple.len() == 64 && apple.bytes().all(|byte| byte.is_ascii_hexdigit()));
}

#[test]
fn of_one_collapse_key_only_the_newest_waits() {
    let (devices, token) = devices();
    let keyed = |key: &str| Storage::Replacing { key: key.to_owned(), until_ms: later() };
    deliver(&devices, &token, 1, keyed("a"));
    deliver(&devices, &token, 2, Storage::Beside { until_ms: later() });
    deliver(&devices, &token, 3, keyed("b"));
    deliver(&devices, &token, 4, keyed("a"));
    assert_eq!(received(&devices, &token), ["2", "3", "4"]);
    assert!(received(&devices, &token).is_empty(), "nothing is handed over twice");
}

#[test]
fn what_is_past_its_time_or_must_not_wait_is_not_kept() {
    let (devices, token) = devices();
    deliver(&devices, &token, 1, Storage::Never);
    deliver(&devices, &token, 2, Storage::Beside { until_ms: now_ms() });
    assert!(received(&devices, &token).is_empty());
    let mut listening = devices.listen(&token).unwrap();
    deliver(&devices, &token, 3, Storage::Never);
    assert_eq!(listening.try_recv().unwrap().message_id, "3");
}

#[test]
fn more_than_a_hundred_waiting_messages_are_all_dropped() {
    let (devices, token) = devices();
    let keyed = Storage::Replacing { key: "a".to_owned(), until_ms: later() };
    deliver(&devices, &token, 0, keyed);
    for id in 1..=101 {
        deliver(&devices, &token, id, Storage::Beside { until_ms: later() });
    }
    assert_eq!(received(&devices, &token), ["0"]);
}

#[test]
fn an_expired_token_lives_again_when_it_registers() {
    let (devices, token) = devices();
    let state = || devices.state(token_hash(token.as_bytes()), "");
    assert!(devices.expire(&token, Some(5)));
    assert_eq!(state(), DeviceState::Expired { since_ms: 5, end: TokenEnd::Unregistered });
    devices.register(TokenRegistration { token: Some(token.clone()), topic: None });
    assert_eq!(state(), DeviceState::Live);
    assert!(!devices.expire("unknown", None));
}
