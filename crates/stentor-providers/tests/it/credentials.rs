//! Credentials: accepted and refused inputs, and the protection of secrets.

use rcgen::{KeyPair, PKCS_ECDSA_P384_SHA384};
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use stentor_core::chunk::TokenList;
use stentor_core::device::ProviderKind;
use stentor_core::id::DeviceId;
use stentor_core::outcome::Outcome;
use stentor_core::ports::provider::CredentialError;
use stentor_providers::apns::credential::ApnsCredential;
use stentor_providers::fcm::credential::FcmCredential;
use stentor_providers::gcm::credential::GcmCredential;
use stentor_providers::hms::credential::HmsCredential;
use stentor_providers::null::Null;
use stentor_providers::{fcm, open};

use crate::support::{Account, StillClock, batch, setup};

fn field<T>(result: Result<T, CredentialError>) -> String {
    match result {
        Err(error) => error.into_invalid().field,
        Ok(_) => "none".to_owned(),
    }
}

fn apns() -> Value {
    json!({
        "key_p8": KeyPair::generate().expect("a key").serialize_pem(),
        "key_id": "KEY0123456",
        "team_id": "TEAM012345",
        "bundle_id": "com.example.app",
    })
}

fn with(mut base: Value, name: &str, value: Value) -> String {
    base[name] = value;
    base.to_string()
}

#[test]
fn a_service_account_is_read_as_google_issues_it() {
    let account = Account::new("https://oauth2.googleapis.com/token");
    let credential = FcmCredential::parse(&account.json.to_string()).expect("a credential");
    assert_eq!(credential.project_id, "a-project");
    assert_eq!((credential.endpoint.host.as_str(), credential.endpoint.port), ("fcm.googleapis.com", 443));
    assert_eq!(credential.token_uri, "https://oauth2.googleapis.com/token");
}

#[test]
fn each_wrong_field_of_a_service_account_is_named() {
    let account = Account::new("https://oauth2.googleapis.com/token").json;
    let parse = |name: &str, value: Value| field(FcmCredential::parse(&with(account.clone(), name, value)));
    for name in ["type", "project_id", "client_email", "private_key_id", "private_key"] {
        assert_eq!(parse(name, Value::Null), name);
        assert_eq!(parse(name, json!(5)), name);
        assert_eq!(parse(name, json!(" ")), name);
    }
    assert_eq!(parse("type", json!("authorized_user")), "type");
    assert_eq!(parse("private_key", json!("-----BEGIN PRIVATE KEY-----\nAAAA")), "private_key");
    assert_eq!(parse("token_uri", json!("not a url")), "token_uri");
    let wrapped = |value: Value| field(FcmCredential::parse(&value.to_string()));
    assert_eq!(wrapped(json!({"service_account": 1})), "service_account");
    assert_eq!(wrapped(json!({"service_account": {"type": "x"}})), "service_account.type");
    assert_eq!(wrapped(json!({"service_account": account, "endpont": "x"})), "endpont");
    assert_eq!(wrapped(json!({"service_account": account, "endpoint": "x"})), "endpoint");
    assert_eq!(field(FcmCredential::parse("[]")), "credential");
}

#[test]
fn r17_urls_with_a_user_and_strange_ones_are_refused_by_name_and_not_shown() {
    let account = |token_uri: &str| Account::new(token_uri).json;
    let fine = account("https://oauth2.googleapis.com/token");
    let refused = |secret: Value| match FcmCredential::parse(&secret.to_string()) {
        Err(error) => {
            let invalid = error.into_invalid();
            assert!(!format!("{invalid:?}").contains("hush"), "{invalid:?}");
            invalid.field
        }
        Ok(_) => "none".to_owned(),
    };
    for uri in [
        "https://me:hush@host/token",
        "https://hush@host/token",
        "file:///hush",
        "data:hush",
        "ftp://host/hush",
    ] {
        assert_eq!(refused(account(uri)), "token_uri", "{uri}");
        assert_eq!(refused(json!({"service_account": account(uri)})), "service_account.token_uri", "{uri}");
        assert_eq!(
            refused(json!({"service_account": fine, "token_endpoint": uri})),
            "token_endpoint",
            "{uri}"
        );
    }
    for endpoint in ["https://me:hush@host", "https://hush@host:443/"] {
        assert_eq!(refused(json!({"service_account": fine, "endpoint": endpoint})), "endpoint", "{endpoint}");
    }
    assert_eq!(refused(json!({"service_account": fine, "server_name": "hush@host"})), "server_name");
}

#[test]
fn each_wrong_field_of_an_apns_credential_is_named() {
    assert_eq!(field(ApnsCredential::parse(&apns().to_string())), "none");
    let parse = |name: &str, value: Value| field(ApnsCredential::parse(&with(apns(), name, value)));
    for name in ["key_p8", "key_id", "team_id", "bundle_id"] {
        assert_eq!(parse(name, Value::Null), name);
        assert_eq!(parse(name, json!("no key, no id")), name);
    }
    assert_eq!(parse("environment", json!("staging")), "environment");
    assert_eq!(parse("endpoint", json!("host")), "endpoint");
    assert_eq!(parse("bundle", json!("x")), "bundle");
    let sandbox = with(apns(), "environment", json!("sandbox"));
    let endpoint = ApnsCredential::parse(&sandbox).expect("a credential").endpoint;
    assert_eq!(endpoint.host, "api.sandbox.push.apple.com");
}

#[test]
fn each_wrong_field_of_a_huawei_credential_is_named_and_its_secret_never_shown() {
    let right =
        json!({"client_secret": "hush\n", "client_id": "104288077", "project_id": "736430079244623146"});
    let read = HmsCredential::parse(&right.to_string()).expect("a credential");
    assert_eq!((read.endpoint.host.as_str(), read.endpoint.port), ("push-api.cloud.huawei.com", 443));
    assert_eq!(read.token_url, "https://oauth-login.cloud.huawei.com/oauth2/v3/token");
    assert_eq!(read.client_secret.expose_secret(), "hush");
    assert!(!format!("{read:?}").contains("hush"));
    let parse = |name: &str, value: Value| field(HmsCredential::parse(&with(right.clone(), name, value)));
    for name in ["client_secret", "client_id", "project_id"] {
        assert_eq!(parse(name, Value::Null), name);
        assert_eq!(parse(name, json!("two\nlines")), name);
    }
    assert_eq!(parse("project_id", json!("a/b")), "project_id");
    assert_eq!(parse("token_endpoint", json!("https://me:hush@host/token")), "token_endpoint");
    assert_eq!(parse("token_endpoint", json!("ftp://host")), "token_endpoint");
    assert_eq!(parse("endpoint", json!("host")), "endpoint");
    assert_eq!(parse("app_id", json!("1")), "app_id");
}

#[test]
fn each_wrong_field_of_a_gcm_credential_is_named_and_its_key_never_shown() {
    let right = json!({"api_key": "hush\n", "endpoint": "https://gcm.example.com"});
    let read = GcmCredential::parse(&right.to_string()).expect("a credential");
    assert_eq!((read.endpoint.host.as_str(), read.path), ("gcm.example.com", "/gcm/send"));
    assert_eq!(read.api_key.expose_secret(), "hush");
    assert!(!format!("{read:?}").contains("hush"));
    let parse = |name: &str, value: Value| field(GcmCredential::parse(&with(right.clone(), name, value)));
    for name in ["api_key", "endpoint"] {
        assert_eq!(parse(name, Value::Null), name);
        assert_eq!(parse(name, json!(5)), name);
    }
    assert_eq!(parse("api_key", json!("two\nlines")), "api_key");
    assert_eq!(parse("endpoint", json!("https://gcm.example.com/gcm/send")), "endpoint");
    assert_eq!(parse("path", json!("/v1/send")), "path");
    assert_eq!(parse("path", json!("/fcm/send")), "none");
}

#[test]
fn a_key_on_another_curve_is_refused_before_the_first_message() {
    let other = KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384).expect("a key").serialize_pem();
    let secret = with(apns(), "key_p8", json!(other));
    assert_eq!(field(open(ProviderKind::Apns, &secret, &setup(&StillClock::new()))), "key_p8");
}

#[test]
fn roots_that_are_none_are_refused() {
    let account = Account::new("https://oauth2.googleapis.com/token").json;
    let secret = json!({"service_account": account, "ca_pem": "nothing"}).to_string();
    let opened = open(ProviderKind::Fcm, &secret, &setup(&StillClock::new()));
    assert!(matches!(field(opened).as_str(), "ca_pem" | "endpoint"));
}

#[test]
fn no_key_shows_itself_in_debug_or_in_an_error() {
    let account = Account::new("https://oauth2.googleapis.com/token").json;
    let secret = account["private_key"].as_str().expect("a key");
    let line = secret.lines().nth(3).expect("a line of the key");
    let debug = format!("{:?}", FcmCredential::parse(&account.to_string()).expect("a credential"));
    assert!(debug.contains("a-project") && !debug.contains(line));
    let broken = with(account.clone(), "private_key", json!(secret.replace("BEGIN", "BEGUN")));
    let error = format!("{:?}", FcmCredential::parse(&broken).err());
    assert!(error.contains("private_key") && !error.contains(line));
    let key = apns();
    let line = key["key_p8"].as_str().and_then(|pem| pem.lines().nth(1)).expect("a line").to_owned();
    let debug = format!("{:?}", ApnsCredential::parse(&key.to_string()).expect("a credential"));
    assert!(debug.contains("TEAM012345") && !debug.contains(&line));
}

#[tokio::test]
async fn the_null_provider_is_opened_like_the_others_and_accepts_everything() {
    let clock = StillClock::new();
    let provider = open(ProviderKind::Null, "{}", &setup(&clock)).expect("a credential");
    assert_eq!(provider.kind(), ProviderKind::Null);
    let mut sent = batch(&[], &clock);
    (sent.devices, sent.tokens) = (vec![DeviceId::from_raw(1)], TokenList::default());
    sent.tokens.push("token");
    assert_eq!(provider.send(sent).await, [Outcome::Accepted]);
    assert_eq!(field(Null::open(r#"{"latency": 1}"#)), "latency");
}

#[test]
fn a_project_id_that_breaks_the_url_is_refused() {
    let account = Account::new("https://oauth2.googleapis.com/token").json;
    let secret = with(account, "project_id", json!("a b"));
    assert_eq!(field(fcm::Fcm::open(&secret, &setup(&StillClock::new()))), "project_id");
}
