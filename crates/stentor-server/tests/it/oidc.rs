//! Login of persons by OpenID Connect: what proves who they are, what they may do, and what the audit trail says of them.

mod approvals;
mod issuer;

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::redirect::Policy;
use reqwest::{Client, Method, RequestBuilder, Response, Url};
use serde_json::{Value, json};
use stentor_server::config::Config;

use crate::harness::{Read, Reading, Server, durable_server_with, server_with};
use issuer::{CLIENT_ID, Issuer, IssuerKey, SECRET, SUBJECT};

const REDIRECT_URL: &str = "http://localhost/console/callback";

/// A browser, which keeps cookies and follows no redirect by itself.
struct Browser {
    client: Client,
    cookies: HashMap<String, String>,
}

/// The end of a login: the status, the code of a refusal, and the page.
#[derive(Debug, PartialEq, Eq)]
enum Landing {
    In,
    Refused(u16, String),
}

fn with_issuer(issuer: &Issuer) -> impl FnOnce(&mut Config) + use<> {
    let url = issuer.url.clone();
    move |config| {
        let oidc = &mut config.console.oidc;
        oidc.issuer = url;
        oidc.client_id = CLIENT_ID.to_owned();
        oidc.client_secret = SECRET.into();
        oidc.redirect_url = REDIRECT_URL.to_owned();
        oidc.roles = vec!["staff=*:admin".to_owned()];
    }
}

async fn scene() -> (Server, Issuer, Browser) {
    let issuer = Issuer::start().await;
    (server_with(with_issuer(&issuer)).await, issuer, Browser::new())
}

impl Browser {
    fn new() -> Self {
        let client = Client::builder().no_proxy().redirect(Policy::none()).build().expect("a client");
        Self { client, cookies: HashMap::new() }
    }

    fn request(&self, server: &Server, method: Method, path: &str) -> RequestBuilder {
        let cookies: Vec<_> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        self.client.request(method, format!("{}{path}", server.url)).header("cookie", cookies.join("; "))
    }

    async fn go(&mut self, server: &Server, path: &str) -> Response {
        let response = self.request(server, Method::GET, path).send().await.expect("an answer");
        for line in response.headers().get_all("set-cookie") {
            let line = line.to_str().expect("a text");
            let (pair, attributes) = line.split_once(';').expect("attributes");
            assert!(attributes.contains("HttpOnly"), "{line}");
            let (name, value) = pair.split_once('=').expect("a value");
            match value {
                "" => drop(self.cookies.remove(name)),
                value => drop(self.cookies.insert(name.to_owned(), value.to_owned())),
            }
        }
        response
    }

    /// Begins a login; returns the parameters that the browser takes to the issuer.
    async fn begin(&mut self, server: &Server) -> HashMap<String, String> {
        let sent = self.go(server, "/console/login").await;
        assert_eq!(sent.status(), 303, "{sent:?}");
        let location = Url::parse(sent.headers()["location"].to_str().expect("a text")).expect("an address");
        assert_eq!(location.path(), "/authorize");
        location.query_pairs().into_owned().collect()
    }

    /// Goes back with the query of a callback.
    async fn land(&mut self, server: &Server, query: &[(&str, &str)]) -> Landing {
        let mut url = Url::parse("http://localhost/console/callback").expect("an address");
        url.query_pairs_mut().extend_pairs(query);
        let response = self.go(server, &format!("{}?{}", url.path(), url.query().expect("a query"))).await;
        let status = response.status().as_u16();
        if status == 303 {
            assert_eq!(response.headers()["location"], "/console");
            assert!(!self.cookies.contains_key("stentor_login"), "a login is tried once");
            return Landing::In;
        }
        assert!(
            response.headers()["content-security-policy"]
                .to_str()
                .expect("a text")
                .contains("default-src 'none'")
        );
        let page = response.text().await.expect("a page");
        let code =
            page.split_once("<code>").and_then(|(_, rest)| rest.split_once("</code>")).expect("a code").0;
        assert!(page.len() < 1_000 && !page.contains(SECRET), "{page}");
        Landing::Refused(status, code.to_owned())
    }

    async fn log_in(&mut self, server: &Server, issuer: &Issuer) -> Landing {
        let sent = self.begin(server).await;
        let code = issuer.log_in(&sent["code_challenge"], &sent["nonce"]);
        self.land(server, &[("state", &sent["state"]), ("code", &code)]).await
    }

    async fn session(&self, server: &Server) -> Read {
        self.request(server, Method::GET, "/console/session").read().await
    }

    async fn change(&self, server: &Server, method: Method, path: &str) -> RequestBuilder {
        let csrf = self.session(server).await.text("csrf");
        self.request(server, method, path).header("x-stentor-csrf", csrf)
    }

    async fn status(&self, server: &Server, path: &str) -> u16 {
        self.request(server, Method::GET, path).read().await.status
    }
}

fn refused(status: u16, code: &str) -> Landing {
    Landing::Refused(status, code.to_owned())
}

#[tokio::test]
async fn a_person_logs_in_with_a_proof_of_this_very_login_and_reads_what_the_role_allows() {
    let (server, issuer, mut browser) = scene().await;
    let tenant = server.sender().await;
    let ways = server.open(Method::GET, "/console/login-ways").read().await;
    assert_eq!(ways.body, json!({"person": "/console/login"}));
    let sent = browser.begin(&server).await;
    let fixed = ["response_type", "client_id", "redirect_uri", "scope", "code_challenge_method", "tenant"];
    let wanted = ["code", CLIENT_ID, REDIRECT_URL, "openid profile", "S256", "a"];
    assert_eq!(fixed.map(|name| sent[name].as_str()), wanted);
    assert_eq!(browser.log_in(&server, &issuer).await, Landing::In);
    let session = browser.session(&server).await;
    assert_eq!((session.status, session.text("by")), (200, "person".to_owned()));
    let roles = json!([{"role": "viewer", "scopes": []}]);
    assert_eq!(session.body["person"], json!({"subject": SUBJECT, "name": "Ada  Lovelace", "roles": roles}));
    let path = format!("/v1/campaigns?app={}", tenant.id);
    assert_eq!(browser.status(&server, &path).await, 200);
    assert_eq!(browser.status(&server, "/v1/status").await, 403, "the operator's");
    assert_eq!(browser.status(&server, &format!("/v1/apps/{}/keys", tenant.id)).await, 403, "an admin's");
    assert_eq!(issuer.reads("description"), 1);
}

#[tokio::test]
async fn tokens_that_prove_nothing_are_refused() {
    let (server, issuer, mut browser) = scene().await;
    assert_eq!(browser.log_in(&server, &issuer).await, Landing::In);
    let later = jiff::Timestamp::now().as_second() + 120;
    let wrong = [
        json!({"nonce": "of another login"}),
        json!({"nonce": null}),
        json!({"aud": "another client"}),
        json!({"aud": [CLIENT_ID, "another client"]}),
        json!({"azp": "another client"}),
        json!({"iss": "http://127.0.0.1:1"}),
        json!({"exp": later - 120 - 61}),
        json!({"iat": later}),
        json!({"nbf": later}),
        json!({"sub": ""}),
        json!({"exp": null}),
    ];
    for claims in wrong {
        issuer.state.lock().claims = claims.clone();
        let landing = Browser::new().log_in(&server, &issuer).await;
        assert_eq!(landing, refused(502, "id_token_invalid"), "{claims}");
    }
}

/// Puts another head before the claims of a token, and signs it with nothing or with what everybody knows.
fn forged(token: &str, algorithm: &str, signature: &str) -> String {
    let claims = token.split('.').nth(1).expect("claims");
    let head = URL_SAFE_NO_PAD.encode(json!({"alg": algorithm, "kid": "first"}).to_string());
    format!("{head}.{claims}.{signature}")
}

#[tokio::test]
async fn a_signature_is_of_a_key_of_the_issuer_and_of_a_permitted_algorithm() {
    let (server, issuer, mut browser) = scene().await;
    issuer.state.lock().claims = json!({"roles": ["staff"]});
    let forgers: [fn(&str) -> String; 6] = [
        |token| forged(token, "none", ""),
        |token| forged(token, "HS256", "AAAA"),
        |token| forged(token, "RS256", "AAAA"),
        |token| forged(token, "ES256", &"A".repeat(86)),
        |token| token.replacen('.', ".e30", 1),
        |_| String::new(),
    ];
    for (number, forge) in forgers.into_iter().enumerate() {
        issuer.state.lock().forge = forge;
        let landing = browser.log_in(&server, &issuer).await;
        assert_eq!(landing, refused(502, "id_token_invalid"), "forger {number}");
        assert_eq!(browser.session(&server).await.status, 401);
    }
    issuer.state.lock().forge = str::to_owned;
    // A key of the same name that the issuer does not publish.
    issuer.state.lock().signing = IssuerKey::ec("first");
    assert_eq!(browser.log_in(&server, &issuer).await, refused(502, "id_token_invalid"));
}

#[tokio::test]
async fn a_new_key_of_the_issuer_is_read_once_and_unknown_names_are_looked_for_at_a_bounded_rate() {
    let (server, issuer, mut browser) = scene().await;
    assert_eq!(browser.log_in(&server, &issuer).await, Landing::In);
    for key in [IssuerKey::rsa("second"), IssuerKey::ec("third")] {
        let before = issuer.reads("keys");
        issuer.state.lock().published.push(key.clone());
        issuer.state.lock().signing = key;
        assert_eq!(browser.log_in(&server, &issuer).await, Landing::In);
        assert_eq!(Browser::new().log_in(&server, &issuer).await, Landing::In);
        assert_eq!(issuer.reads("keys"), before + 1);
    }
    issuer.state.lock().signing = IssuerKey::ec("nowhere");
    let before = issuer.reads("keys");
    let begin = std::time::Instant::now();
    for _ in 0..10 {
        assert_eq!(browser.log_in(&server, &issuer).await, refused(502, "id_token_invalid"));
    }
    let allowed = 4 + begin.elapsed().as_secs() as u32 + 1;
    assert!(issuer.reads("keys") - before <= allowed, "{} reads", issuer.reads("keys") - before);
}

#[tokio::test]
async fn an_answer_that_does_not_belong_to_the_login_of_the_browser_is_refused() {
    let (server, issuer, mut browser) = scene().await;
    let sent = browser.begin(&server).await;
    let code = issuer.log_in(&sent["code_challenge"], &sent["nonce"]);
    // Another browser, without a login and with one of its own.
    let mut other = Browser::new();
    let query = [("state", sent["state"].as_str()), ("code", &code)];
    assert_eq!(other.land(&server, &query).await, refused(400, "login_expired"));
    other.begin(&server).await;
    assert_eq!(other.land(&server, &query).await, refused(400, "state_mismatch"));
    assert_eq!(browser.land(&server, &[("code", &code)]).await, refused(400, "state_mismatch"));
    assert_eq!(browser.land(&server, &query).await, refused(400, "login_expired"), "a login is tried once");
    assert_eq!(issuer.reads("token"), 0, "no code was shown to the issuer");
    let sent = browser.begin(&server).await;
    let twice = [("state", sent["state"].as_str()), ("state", "x"), ("code", "c")];
    assert_eq!(browser.land(&server, &twice).await, refused(400, "state_mismatch"));
    let sent = browser.begin(&server).await;
    let elsewhere = [("state", sent["state"].as_str()), ("iss", "https://other.example"), ("code", "c")];
    assert_eq!(browser.land(&server, &elsewhere).await, refused(400, "state_mismatch"));
    for (error, landing) in
        [("access_denied", refused(403, "login_canceled")), ("<script>", refused(502, "issuer_refused"))]
    {
        let sent = browser.begin(&server).await;
        assert_eq!(browser.land(&server, &[("state", &sent["state"]), ("error", error)]).await, landing);
    }
    let sent = browser.begin(&server).await;
    let stolen = issuer.log_in("the challenge of another login", &sent["nonce"]);
    let query = [("state", sent["state"].as_str()), ("code", &stolen)];
    assert_eq!(browser.land(&server, &query).await, refused(502, "issuer_refused"));
}

#[tokio::test]
async fn a_login_that_another_site_begins_is_refused() {
    let (server, _, browser) = scene().await;
    let request =
        browser.request(&server, Method::GET, "/console/login").header("sec-fetch-site", "cross-site");
    let read = request.read().await;
    assert_eq!(read.refusal().1, "forbidden");
    assert!(!read.headers.contains_key("set-cookie"), "{read:?}");
}

#[tokio::test]
async fn an_issuer_that_answers_too_much_or_something_else_ends_the_login_and_not_the_server() {
    for (path, description) in [
        (Some("description"), json!({})),
        (Some("token"), json!({})),
        (Some("keys"), json!({})),
        (None, json!({"issuer": "http://127.0.0.1:1"})),
        (None, json!({"token_endpoint": null})),
        (None, json!({"jwks_uri": "file:///etc/passwd"})),
        (None, json!({"jwks_uri": "http://169.254.169.254/keys"})),
    ] {
        let (server, issuer, mut browser) = scene().await;
        issuer.state.lock().huge = path;
        issuer.state.lock().description = description.clone();
        let first = browser.go(&server, "/console/login").await;
        let landing = match first.status().as_u16() {
            303 => browser.log_in(&server, &issuer).await,
            status => refused(status, "issuer_unavailable"),
        };
        assert_eq!(landing, refused(502, "issuer_unavailable"), "{path:?} {description}");
        assert_eq!(server.open(Method::GET, "/healthz").read().await.status, 200);
    }
}

#[tokio::test]
async fn an_issuer_that_never_answers_is_given_up_while_the_console_answers_others() {
    let (server, issuer, mut browser) = scene().await;
    issuer.state.lock().stuck = Some("description");
    let (slow, quick) = tokio::join!(browser.go(&server, "/console/login"), async {
        server.root(Method::GET, "/v1/apps").read().await.status
    });
    assert_eq!((slow.status().as_u16(), quick), (502, 200));
    assert!(slow.text().await.expect("a page").contains("issuer_unavailable"));
}

#[tokio::test]
async fn more_logins_of_one_address_than_are_allowed_are_refused() {
    let (server, _, mut browser) = scene().await;
    let mut refused = None;
    for _ in 0..120 {
        let answer = browser.go(&server, "/console/login").await;
        if answer.status() != 303 {
            refused = Some(answer);
            break;
        }
    }
    let refused = refused.expect("a limit");
    assert_eq!(refused.status(), 429);
    assert!(refused.text().await.expect("a page").contains("too_many_logins"));
}

/// Returns the status of an attempt to do each thing: read, send, register, and list the keys of an app.
async fn powers(browser: &Browser, server: &Server, app: &str) -> [u16; 5] {
    let query = format!("?app={app}");
    let message = json!({"target": "everyone", "notification": {"title": "t"}});
    let device = json!({"platform": "android", "provider": "null", "token": "t"});
    let send = browser.change(server, Method::POST, &format!("/v1/messages{query}")).await.json(&message);
    let register = browser.change(server, Method::POST, &format!("/v1/devices{query}")).await.json(&device);
    [
        browser.status(server, &format!("/v1/messages{query}")).await,
        send.read().await.status,
        register.read().await.status,
        browser.status(server, &format!("/v1/apps/{app}/keys")).await,
        browser.status(server, &format!("/v1/audit{query}")).await,
    ]
}

#[tokio::test]
async fn each_role_may_do_what_the_table_of_operations_says_in_its_app_and_nothing_in_another() {
    let (server, issuer, _) = scene().await;
    let (own, other) = (server.sender().await, server.sender().await);
    let cases = [
        ("viewer", [200, 403, 403, 403, 403]),
        ("sender", [200, 202, 403, 403, 403]),
        ("operator", [200, 202, 201, 403, 403]),
        ("admin", [200, 202, 200, 200, 403]),
    ];
    for (role, wanted) in cases {
        issuer.state.lock().claims = json!({"roles": [format!("stentor:{}:{role}", own.id)]});
        let mut browser = Browser::new();
        assert_eq!(browser.log_in(&server, &issuer).await, Landing::In);
        assert_eq!(powers(&browser, &server, &own.id).await, wanted, "{role}");
        assert_eq!(powers(&browser, &server, &other.id).await, [404, 404, 404, 404, 403], "{role}");
        let apps = browser.request(&server, Method::GET, "/v1/apps").read().await;
        assert_eq!(apps.body["apps"].as_array().map(Vec::len), Some(1), "{apps:?}");
    }
    issuer.state.lock().claims = json!({"roles": ["staff"]});
    let mut browser = Browser::new();
    assert_eq!(browser.log_in(&server, &issuer).await, Landing::In);
    assert_eq!(powers(&browser, &server, &other.id).await, [200, 202, 201, 200, 200], "an admin of all apps");
    assert_eq!(browser.status(&server, "/v1/campaigns").await, 400, "the app must be named");
    assert_eq!(
        browser.status(&server, "/v1/campaigns?app=app_0000000000001").await,
        404,
        "there is no such app"
    );
}

#[tokio::test]
async fn a_person_without_a_role_gets_a_refusal_and_a_changed_role_counts_from_the_next_login_on() {
    let (server, issuer, mut browser) = scene().await;
    for claims in [json!({}), json!({"roles": ["unknown"]}), json!({"roles": "stentor:*:root"})] {
        issuer.state.lock().claims = claims;
        assert_eq!(browser.log_in(&server, &issuer).await, refused(403, "no_role"));
    }
    let many: Vec<_> = (1..=33_u64)
        .map(|app| format!("stentor:{}:viewer", stentor_core::id::AppId::from_raw(app)))
        .collect();
    issuer.state.lock().claims = json!({"roles": many});
    assert_eq!(browser.log_in(&server, &issuer).await, refused(403, "too_many_roles"));
    for (roles, status) in [("staff", 200), ("stentor:*:viewer", 403)] {
        issuer.state.lock().claims = json!({"roles": [roles]});
        assert_eq!(browser.log_in(&server, &issuer).await, Landing::In);
        assert_eq!(browser.status(&server, "/v1/status").await, status, "{roles}");
    }
}

#[tokio::test]
async fn a_session_of_a_person_survives_a_restart_and_ends_with_the_settings_and_the_logout() {
    let issuer = Issuer::start().await;
    let server = durable_server_with(tempfile::tempdir().expect("a folder"), with_issuer(&issuer)).await;
    let mut browser = Browser::new();
    assert_eq!(browser.log_in(&server, &issuer).await, Landing::In);
    let server = durable_server_with(server.stop().await, with_issuer(&issuer)).await;
    assert_eq!(browser.session(&server).await.status, 200);
    let other_roles = |config: &mut Config| {
        with_issuer(&issuer)(config);
        config.console.oidc.roles = vec!["staff=*:viewer".to_owned()];
    };
    let server = durable_server_with(server.stop().await, other_roles).await;
    assert_eq!(browser.session(&server).await.status, 401, "what a role means has changed");
    let server = durable_server_with(server.stop().await, |_| {}).await;
    assert_eq!(browser.session(&server).await.status, 401, "persons do not log in any more");
    assert_eq!(browser.status(&server, "/console/login").await, 404);
    let server = durable_server_with(server.stop().await, with_issuer(&issuer)).await;
    let out = browser.change(&server, Method::DELETE, "/console/session").await.read().await;
    let url = Url::parse(&out.text("logout_url")).expect("an address");
    let query: HashMap<_, _> = url.query_pairs().into_owned().collect();
    assert_eq!((out.status, url.path()), (200, "/logout"));
    assert_eq!(query["client_id"], CLIENT_ID);
    assert_eq!(query["post_logout_redirect_uri"], "http://localhost/console");
    assert_eq!(browser.session(&server).await.status, 401);
    assert_eq!(browser.log_in(&server, &issuer).await, Landing::In);
}

#[tokio::test]
async fn the_audit_trail_names_the_person_of_each_change_and_of_each_refusal() {
    let (server, issuer, mut browser) = scene().await;
    let tenant = server.sender().await;
    issuer.state.lock().claims = json!({"roles": ["staff"]});
    assert_eq!(browser.log_in(&server, &issuer).await, Landing::In);
    let path = format!("/v1/apps/{}/keys", tenant.id);
    let key = json!({"name": "made by a person", "scopes": ["send"]});
    let made = browser.change(&server, Method::POST, &path).await.json(&key).read().await;
    assert_eq!(made.status, 201, "{made:?}");
    issuer.state.lock().claims = json!({"roles": [format!("stentor:{}:sender", tenant.id)], "name": "B"});
    assert_eq!(browser.log_in(&server, &issuer).await, Landing::In);
    let refused = browser.change(&server, Method::POST, &path).await.json(&key).read().await;
    assert_eq!(refused.status, 403, "{refused:?}");
    let read = server.root(Method::GET, "/v1/audit?action=key.create&limit=2").read().await;
    let shown: Vec<_> = read.body["entries"].as_array().expect("entries").iter().map(author).collect();
    assert_eq!(shown, [author_of("B", "refused"), author_of("Ada  Lovelace", "done")]);
    let own = browser.request(&server, Method::GET, "/v1/audit").read().await;
    assert_eq!(own.status, 403, "the trail is the operator's");
}

fn author(entry: &Value) -> Value {
    let fields = ["by", "person", "person_name", "key", "outcome"];
    fields.iter().map(|name| ((*name).to_owned(), entry[name].clone())).collect()
}

fn author_of(name: &str, outcome: &str) -> Value {
    json!({"by": "person", "person": SUBJECT, "person_name": name, "key": null, "outcome": outcome})
}
