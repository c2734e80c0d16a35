use proptest::prelude::*;

use super::*;

const KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
const PLACE: SealedPlace = SealedPlace::Credential(AppId::from_raw(7), ProviderKind::Apns);
/// A record as version 1 writes it; it must open for ever.
const GOLDEN: &str =
    "seal1.af52c9c5deadc160.ZGVmZ2hpamtsbW5vMzm1AwC2JqYcWH2bvwYYmDbge2Dw-pH9zN0Vr47qEQaaCYM.2d07b74e";

fn keys(text: &str) -> SealKeys {
    text.parse().expect("keys")
}

fn other(byte: u8) -> String {
    hex(&[byte; KEY_BYTES])
}

#[test]
fn a_record_of_version_1_opens_for_ever() {
    let keys = keys(KEY);
    assert_eq!(keys.open(PLACE, GOLDEN).as_deref(), Some(r#"{"key_p8":"secret"}"#));
    assert_eq!(kept(GOLDEN), SecretForm::Sealed(keys.present()));
}

#[test]
fn a_key_is_read_in_hex_and_in_base64_and_is_the_same_key() {
    let bytes = unhex(KEY).expect("hex");
    let id = keys(KEY).present();
    for text in
        [STANDARD.encode(&bytes), URL_SAFE_NO_PAD.encode(&bytes), format!("\n {}\n", KEY.to_uppercase())]
    {
        assert_eq!(keys(&text).present(), id);
    }
}

#[test]
fn what_is_no_key_is_refused_without_being_repeated() {
    let wrong = |text: &str| text.parse::<SealKeys>().expect_err("refused");
    assert_eq!(wrong(" \n"), SealKeysError::Empty);
    assert_eq!(wrong(&KEY[2..]), SealKeysError::Word(1));
    assert_eq!(wrong(&format!("{KEY} passw0rd")), SealKeysError::Word(2));
    assert!(!wrong("passw0rd").to_string().contains("passw0rd"));
    assert_eq!(wrong(&vec![KEY; KEYS_MAX_COUNT + 1].join(" ")), SealKeysError::TooMany);
    assert!(!format!("{:?}", keys(KEY)).contains(KEY));
}

#[test]
fn a_former_key_opens_and_the_present_one_seals() {
    let before = keys(&other(1)).seal(PLACE, "{}").expect("sealed");
    let both = keys(&format!("{} {}", other(2), other(1)));
    assert_eq!(both.open(PLACE, &before).as_deref(), Some("{}"));
    let after = both.seal(PLACE, "{}").expect("sealed");
    assert_eq!(kept(&after), SecretForm::Sealed(keys(&other(2)).present()));
    assert_eq!(keys(&other(1)).open(PLACE, &after), None, "another key opens nothing");
}

#[test]
fn a_record_in_another_row_does_not_open() {
    let keys = keys(KEY);
    let record = keys.seal(PLACE, "{}").expect("sealed");
    let app = AppId::from_raw(7);
    let others = [
        SealedPlace::Credential(AppId::from_raw(8), ProviderKind::Apns),
        SealedPlace::Credential(app, ProviderKind::Fcm),
        SealedPlace::Webhook(app),
    ];
    assert!(others.iter().all(|other| keys.open(*other, &record).is_none()));
    let record = keys.seal(SealedPlace::Webhook(app), "{}").expect("sealed");
    assert_eq!(keys.open(SealedPlace::Webhook(AppId::from_raw(8)), &record), None);
    assert_eq!(keys.open(SealedPlace::Webhook(app), &record).as_deref(), Some("{}"));
}

#[test]
fn the_same_secret_is_never_sealed_alike() {
    let keys = keys(KEY);
    assert_ne!(keys.seal(PLACE, "{}"), keys.seal(PLACE, "{}"));
}

proptest! {
    #[test]
    fn what_is_sealed_opens_and_shows_nothing(secret in "\\PC{0,400}", app: u64) {
        let (keys, place) = (keys(KEY), SealedPlace::Credential(AppId::from_raw(app), ProviderKind::Fcm));
        let record = keys.seal(place, &secret).expect("sealed");
        prop_assert!(secret.len() < 12 || !record.contains(&secret));
        prop_assert_eq!(keys.open(place, &record), Some(secret));
    }

    #[test]
    fn a_flipped_bit_is_refused_as_torn_and_a_forged_sum_by_the_tag(at in 0_usize..100_000, bit in 0_u8..7) {
        let keys = keys(KEY);
        let record = keys.seal(PLACE, r#"{"service_account":{}}"#).expect("sealed");
        let whole = record.rsplit_once('.').map(|(body, _)| body.to_owned()).expect("a sum");
        let mut bytes = record.into_bytes();
        let at = at % bytes.len();
        bytes[at] ^= 1 << bit;
        let torn = String::from_utf8(bytes).expect("ASCII");
        prop_assert_eq!(keys.open(PLACE, &torn), None);
        prop_assert!(!matches!(kept(&torn), SecretForm::Sealed(_)));
        if let Some((body, _)) = torn.rsplit_once('.').filter(|(body, _)| *body != whole) {
            prop_assert_eq!(keys.open(PLACE, &format!("{body}.{}", sum(body))), None);
        }
    }

    #[test]
    fn nonsense_is_told_and_never_panics(text in "(seal1\\.)?\\PC{0,80}") {
        prop_assert_eq!(keys(KEY).open(PLACE, &text), None);
        let _any = kept(&text);
    }
}
