use serde_json::json;

use super::*;

const NOW: i64 = 1_800_000_000;

fn expected() -> Expected<'static> {
    Expected {
        issuer: "https://id.example",
        client_id: "stentor",
        nonce: "n",
        now_seconds: NOW,
        leeway_seconds: 60,
    }
}

/// Checks good claims with some of them changed; `null` removes one.
fn checked(changes: Value) -> Result<(), &'static str> {
    let mut claims = json!({"iss": "https://id.example", "sub": "1", "aud": "stentor", "exp": NOW + 1, "iat": NOW, "nonce": "n"});
    for (name, value) in changes.as_object().expect("an object") {
        match value {
            Value::Null => drop(claims.as_object_mut().expect("an object").remove(name)),
            value => claims[name] = value.clone(),
        }
    }
    let claims: Claims = serde_json::from_value(claims).map_err(|_| "unreadable")?;
    claims.check(&expected()).map_err(|refusal| refusal.reason)
}

#[test]
fn claims_about_another_issuer_client_or_login_are_refused() {
    assert_eq!(checked(json!({})), Ok(()));
    assert_eq!(checked(json!({"iss": "https://id.example/"})), Err("it is of another issuer"));
    assert_eq!(checked(json!({"aud": "other"})), Err("it is for another client"));
    assert_eq!(checked(json!({"aud": []})), Err("it is for another client"));
    assert_eq!(checked(json!({"aud": ["stentor"]})), Ok(()));
    assert_eq!(checked(json!({"aud": ["stentor", "other"]})), Err("it was given to another client"));
    assert_eq!(checked(json!({"aud": ["stentor", "other"], "azp": "stentor"})), Ok(()));
    assert_eq!(checked(json!({"azp": "other"})), Err("it was given to another client"));
    for nonce in [json!("m"), json!(""), Value::Null] {
        assert_eq!(checked(json!({"nonce": nonce})), Err("it is of another login"));
    }
}

#[test]
fn the_clocks_of_both_sides_may_differ_by_the_leeway_and_no_more() {
    assert_eq!(checked(json!({"exp": NOW - 59})), Ok(()));
    assert_eq!(checked(json!({"exp": NOW - 60})), Err("it has expired"));
    assert_eq!(checked(json!({"iat": NOW + 60})), Ok(()));
    assert_eq!(checked(json!({"iat": NOW + 61})), Err("it comes from the future"));
    assert_eq!(checked(json!({"nbf": NOW + 61})), Err("it is not valid yet"));
    assert_eq!(checked(json!({"exp": NOW as f64 + 0.5, "iat": NOW as f64 - 0.5})), Ok(()));
}

#[test]
fn a_claim_that_is_missing_or_of_another_type_is_refused() {
    for name in ["iss", "sub", "aud", "exp", "iat"] {
        assert_eq!(checked(json!({name: Value::Null})), Err("unreadable"), "{name}");
        assert_eq!(checked(json!({name: {}})), Err("unreadable"), "{name}");
    }
    assert_eq!(checked(json!({"exp": "never"})), Err("unreadable"));
}

#[test]
fn a_token_without_a_signature_or_with_a_shared_secret_is_not_read() {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    let head = |head: Value| format!("{}.e30.AA", URL_SAFE_NO_PAD.encode(head.to_string()));
    for algorithm in ["none", "None", "HS256", "HS512", "PS256", "RS512", "ES384", "EdDSA", ""] {
        assert!(IdToken::read(&head(json!({"alg": algorithm}))).is_err(), "{algorithm}");
    }
    assert!(IdToken::read(&head(json!({"alg": "RS256"}))).is_ok());
    assert!(IdToken::read(&head(json!({"alg": "ES256", "crit": ["b64"], "b64": false}))).is_err());
    assert!(IdToken::read("").is_err() && IdToken::read("a.b").is_err());
    assert!(
        IdToken::read(&format!("{}{}", head(json!({"alg": "RS256"})), "A".repeat(TOKEN_MAX_BYTES))).is_err()
    );
}
