//! An identity provider with keys of its own, which can be told to misbehave.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Form, Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use parking_lot::Mutex;
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_RSA_SHA256};
use serde_json::{Value, json};

/// The subject of the person who logs in.
pub(super) const SUBJECT: &str = "248289761001";
pub(super) const CLIENT_ID: &str = "stentor console";
pub(super) const SECRET: &str = "a secret: with % and ä";

/// A key that signs ID tokens.
#[derive(Clone)]
pub(super) struct IssuerKey {
    name: &'static str,
    algorithm: Algorithm,
    key: EncodingKey,
}

/// A running identity provider.
#[derive(Clone)]
pub(super) struct Issuer {
    pub(super) url: String,
    pub(super) state: Arc<Mutex<IssuerState>>,
}

/// What the identity provider answers.
pub(super) struct IssuerState {
    /// The keys that it publishes, and the key that signs.
    pub(super) published: Vec<IssuerKey>,
    pub(super) signing: IssuerKey,
    /// Claims beside the usual ones, or in their place; `null` removes one.
    pub(super) claims: Value,
    /// Makes something else of the signed token.
    pub(super) forge: fn(&str) -> String,
    /// Fields of its description beside the usual ones, or in their place.
    pub(super) description: Value,
    /// A path that is answered with so many bytes, and one that is never answered.
    pub(super) huge: Option<&'static str>,
    pub(super) stuck: Option<&'static str>,
    pub(super) reads: HashMap<&'static str, u32>,
    /// The logins by their codes, each with its challenge and nonce.
    codes: HashMap<String, (String, String)>,
}

impl IssuerKey {
    pub(super) fn rsa(name: &'static str) -> Self {
        let pem = KeyPair::generate_for(&PKCS_RSA_SHA256).expect("a key").serialize_pem();
        let key = EncodingKey::from_rsa_pem(pem.as_bytes()).expect("a key");
        Self { name, algorithm: Algorithm::RS256, key }
    }

    pub(super) fn ec(name: &'static str) -> Self {
        let pem = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).expect("a key").serialize_pem();
        let key = EncodingKey::from_ec_pem(pem.as_bytes()).expect("a key");
        Self { name, algorithm: Algorithm::ES256, key }
    }

    fn public(&self) -> Value {
        let mut key = Jwk::from_encoding_key(&self.key, self.algorithm).expect("a key");
        key.common.key_id = Some(self.name.to_owned());
        serde_json::to_value(key).expect("JSON")
    }

    fn sign(&self, claims: &Value) -> String {
        let header = Header { kid: Some(self.name.to_owned()), ..Header::new(self.algorithm) };
        jsonwebtoken::encode(&header, claims, &self.key).expect("signed")
    }
}

impl Issuer {
    pub(super) async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let key = IssuerKey::ec("first");
        let state = IssuerState {
            published: vec![key.clone()],
            signing: key,
            claims: json!({"roles": ["stentor:*:viewer"]}),
            forge: str::to_owned,
            description: json!({}),
            huge: None,
            stuck: None,
            reads: HashMap::new(),
            codes: HashMap::new(),
        };
        let issuer = Self { url, state: Arc::new(Mutex::new(state)) };
        let router = Router::new()
            .route("/.well-known/openid-configuration", get(describe))
            .route("/keys", get(publish))
            .route("/token", post(exchange))
            .with_state(issuer.clone());
        tokio::spawn(async { axum::serve(listener, router).await });
        issuer
    }

    /// Lets the person log in; returns the code with which the browser goes back.
    pub(super) fn log_in(&self, challenge: &str, nonce: &str) -> String {
        let code = format!("code-{}", rand_text());
        self.state.lock().codes.insert(code.clone(), (challenge.to_owned(), nonce.to_owned()));
        code
    }

    pub(super) fn reads(&self, path: &str) -> u32 {
        self.state.lock().reads.get(path).copied().unwrap_or_default()
    }

    /// Counts a request, and misbehaves if the test wants it.
    async fn arrive(&self, path: &'static str) -> Option<Response> {
        let (is_huge, is_stuck) = {
            let mut state = self.state.lock();
            *state.reads.entry(path).or_default() += 1;
            (state.huge == Some(path), state.stuck == Some(path))
        };
        if is_stuck {
            tokio::time::sleep(Duration::from_secs(3_600)).await;
        }
        is_huge.then(|| format!("{{\"filling\": \"{}\"}}", "x".repeat(1 << 20)).into_response())
    }
}

/// A text that no one else has.
fn rand_text() -> String {
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).expect("a key");
    URL_SAFE_NO_PAD.encode(digest(&SHA256, &key.serialize_der()))
}

/// Puts the fields of an object over those of another; `null` removes one.
fn laid_over(mut below: Value, above: &Value) -> Value {
    let fields = below.as_object_mut().expect("an object");
    for (name, value) in above.as_object().expect("an object") {
        match value {
            Value::Null => drop(fields.remove(name)),
            value => drop(fields.insert(name.clone(), value.clone())),
        }
    }
    below
}

async fn describe(State(issuer): State<Issuer>) -> Response {
    if let Some(other) = issuer.arrive("description").await {
        return other;
    }
    let url = &issuer.url;
    let description = json!({
        "issuer": url,
        "authorization_endpoint": format!("{url}/authorize?tenant=a"),
        "token_endpoint": format!("{url}/token"),
        "jwks_uri": format!("{url}/keys"),
        "end_session_endpoint": format!("{url}/logout"),
    });
    Json(laid_over(description, &issuer.state.lock().description)).into_response()
}

async fn publish(State(issuer): State<Issuer>) -> Response {
    if let Some(other) = issuer.arrive("keys").await {
        return other;
    }
    // Keys of other kinds and damaged ones stand before the good ones.
    let foreign = [json!({"kty": "oct", "k": "AAAA", "kid": "first"}), json!({"kty": "new"}), json!(7)];
    let keys: Vec<Value> =
        foreign.into_iter().chain(issuer.state.lock().published.iter().map(IssuerKey::public)).collect();
    Json(json!({"keys": keys})).into_response()
}

async fn exchange(
    State(issuer): State<Issuer>,
    headers: HeaderMap,
    Form(form): Form<HashMap<String, String>>,
) -> Response {
    if let Some(other) = issuer.arrive("token").await {
        return other;
    }
    let mut state = issuer.state.lock();
    let login = form.get("code").and_then(|code| state.codes.remove(code));
    let is_client = headers.get("authorization").is_some_and(|line| {
        // RFC 6749, section 2.3.1.
        let pair = "stentor+console:a+secret%3A+with+%25+and+%C3%A4";
        line == format!("Basic {}", STANDARD.encode(pair)).as_str()
    });
    let proof = URL_SAFE_NO_PAD.encode(digest(&SHA256, form["code_verifier"].as_bytes()));
    let Some((_, nonce)) = login.filter(|(challenge, _)| *challenge == proof && is_client) else {
        return (StatusCode::BAD_REQUEST, Json(json!({"error": "invalid_grant"}))).into_response();
    };
    let now = jiff::Timestamp::now().as_second();
    let claims = json!({
        "iss": issuer.url, "sub": SUBJECT, "aud": CLIENT_ID, "exp": now + 300, "iat": now, "nonce": nonce,
        "name": "Ada\u{202e} Lovelace",
    });
    let token = state.signing.sign(&laid_over(claims, &state.claims));
    let id_token = (state.forge)(&token);
    Json(json!({"access_token": "unused", "token_type": "Bearer", "id_token": id_token})).into_response()
}
