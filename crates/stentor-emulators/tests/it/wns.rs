//! WNS: access tokens, every documented response, headers, and what a device receives.

use crate::rig::{self, Client, Reply};
use serde_json::{Value, json};
use std::net::SocketAddr;
use stentor_emulators::device::DeviceMessage;
use stentor_emulators::wns::{ChannelRequest, WnsChannel, WnsClient};
use stentor_emulators::{RunningWns, TlsConfig, WnsConfig, WnsEmulator, WnsOptions};
use tokio::sync::mpsc::UnboundedReceiver;

const ENTRA: &str = "/tenant-1/oauth2/v2.0/token";
const ACCOUNT: &str = "/accesstoken.srf";
const SCOPE: &str = "https://wns.windows.com/.default";
const TOAST: &[u8] = b"<toast><visual/></toast>";

/// Every code with its status and its word.
const CODES: &[(u16, &str, &str)] = &[
    (200, "Dropped", "dropped"),
    (400, "BadRequest", "dropped"),
    (401, "Unauthorized", "dropped"),
    (403, "Forbidden", "dropped"),
    (404, "NotFound", "dropped"),
    (405, "MethodNotAllowed", "dropped"),
    (406, "AppThrottled", "appthrottled"),
    (406, "ChannelThrottled", "channelthrottled"),
    (410, "Gone", "dropped"),
    (413, "TooLarge", "dropped"),
    (500, "InternalError", "dropped"),
    (503, "Unavailable", "dropped"),
];

type Headers<'a> = Vec<(&'a str, String)>;

async fn start(config: WnsConfig) -> RunningWns {
    let control = Some(rig::CONTROL.parse().unwrap());
    WnsEmulator::start(WnsConfig { tls: TlsConfig::Plaintext, control, ..config }).await.unwrap()
}

/// Returns an emulator that requires no access token.
async fn open(policy: Value) -> RunningWns {
    let vendor = WnsOptions { require_token: false, ..WnsOptions::default() };
    start(WnsConfig { vendor, policy: rig::read(policy), ..WnsConfig::default() }).await
}

fn client_of(tenant: Option<&str>, id: &str, secret: &str) -> WnsClient {
    WnsClient {
        tenant: tenant.map(str::to_owned),
        client_id: id.to_owned(),
        client_secret: secret.to_owned(),
    }
}

fn toast() -> Headers<'static> {
    vec![("x-wns-type", "wns/toast".to_owned()), ("content-type", "text/xml".to_owned())]
}

fn raw() -> Headers<'static> {
    vec![("x-wns-type", "wns/raw".to_owned()), ("content-type", "application/octet-stream".to_owned())]
}

async fn post(client: &mut Client, path: &str, headers: &Headers<'_>, body: &[u8]) -> Reply {
    let request =
        headers.iter().fold(client.request(path), |request, (name, value)| request.header(*name, value));
    client.send(request.body(()).unwrap(), body).await.unwrap()
}

/// Returns status, word and sentence of an answer.
fn said(reply: &Reply) -> (u16, &str, &str) {
    let text = |name: &str| reply.headers.get(name).map_or("", |value| value.to_str().unwrap());
    (reply.status.as_u16(), text("x-wns-status"), text("x-wns-error-description"))
}

async fn ask(address: SocketAddr, path: &str, form: &[(&str, &str)]) -> (u16, Value) {
    let request = reqwest::Client::new().post(format!("http://{address}{path}")).form(form);
    let reply = request.send().await.unwrap();
    (reply.status().as_u16(), reply.json().await.unwrap())
}

async fn token(address: SocketAddr, id: &str) -> String {
    let form = [
        ("grant_type", "client_credentials"),
        ("client_id", id),
        ("client_secret", "secret"),
        ("scope", SCOPE),
    ];
    let (status, granted) = ask(address, ENTRA, &form).await;
    assert_eq!(status, 200, "{granted}");
    granted["access_token"].as_str().unwrap().to_owned()
}

fn with_bearer(mut headers: Headers<'static>, token: &str) -> Headers<'static> {
    headers.push(("authorization", format!("Bearer {token}")));
    headers
}

fn listen(wns: &RunningWns, channel: &WnsChannel) -> UnboundedReceiver<DeviceMessage> {
    wns.running.devices().listen(&channel.token).unwrap()
}

fn path(channel: &WnsChannel) -> &str {
    &channel.uri[channel.uri.find("/?").unwrap()..]
}

#[tokio::test]
async fn a_notification_is_sent_with_a_token_of_entra_id_and_arrives() {
    let wns = start(WnsConfig::default()).await;
    let mut client = Client::connect(wns.running.addr()).await;
    let channel = wns.open_channel(ChannelRequest::default());
    assert!(channel.uri.starts_with(&format!("http://{}/?token=AwYAAAB", wns.running.addr())));
    let mut messages = listen(&wns, &channel);
    let mut headers = with_bearer(toast(), &token(wns.running.addr(), "app").await);
    headers.extend([("x-wns-requestforstatus", "true".to_owned()), ("ms-cv", "abc.1".to_owned())]);
    let reply = post(&mut client, path(&channel), &headers, TOAST).await;
    assert_eq!((said(&reply), reply.body.len()), ((200, "received", ""), 0));
    assert_eq!(reply.headers["x-wns-deviceconnectionstatus"], "connected");
    assert_eq!(
        (reply.headers["x-wns-msg-id"].len(), &reply.headers["ms-cv"]),
        (16, &"abc.1".parse().unwrap())
    );
    let message = messages.recv().await.unwrap();
    assert_eq!(message.payload, json!({"text": "<toast><visual/></toast>"}));
    assert_eq!((message.push_type.as_deref(), message.high_priority), (Some("wns/toast"), true));
    assert_eq!(wns.running.counts(&channel.token).accepted, 1);
}

#[tokio::test]
async fn a_channel_is_the_same_in_each_spelling_of_its_token() {
    let wns = open(json!({})).await;
    let mut client = Client::connect(wns.running.addr()).await;
    for path in ["/?token=a%2fb%2B%3d", "/?token=a/b+=", "/?x=1&token=a%2Fb%2b="] {
        assert_eq!(post(&mut client, path, &toast(), TOAST).await.status, 200, "{path}");
    }
    assert_eq!(wns.running.counts("a/b+=").accepted, 3);
}

#[tokio::test]
async fn every_code_comes_with_its_status_and_its_word() {
    let answers: Vec<Value> = CODES
        .iter()
        .map(|(_, code, _)| json!({"answer": {"error": {"code": code, "retry_after_s": 900}}}))
        .collect();
    let wns = open(json!({"scripts": [{"prefix": "", "answers": answers}]})).await;
    let mut client = Client::connect(wns.running.addr()).await;
    for (status, code, word) in CODES {
        let reply = post(&mut client, "/?token=a", &toast(), TOAST).await;
        let (found, found_word, sentence) = said(&reply);
        assert_eq!((found, found_word), (*status, *word), "{code}");
        assert!(sentence.ends_with('.') && reply.headers.contains_key("x-wns-msg-id"), "{code}");
        let wait = if *code == "ChannelThrottled" { "x-wns-continue-after" } else { "retry-after" };
        assert_eq!(reply.headers[wait], "900", "{code}");
        assert_eq!(reply.headers.contains_key("www-authenticate"), *status == 401);
        assert_eq!(reply.headers.contains_key("allow"), *status == 405);
    }
    assert_eq!(post(&mut client, "/?token=a", &toast(), TOAST).await.status, 200, "the script has ended");
    let counts = wns.running.counts("a");
    assert_eq!((counts.rejected as usize, counts.accepted), (CODES.len(), 1));
}

#[tokio::test]
async fn what_is_no_channel_and_what_is_no_post_is_refused() {
    let wns = open(json!({})).await;
    let mut client = Client::connect(wns.running.addr()).await;
    for path in ["/", "/?token=", "/?other=a", "/x?token=a", "/?token=%zz"] {
        assert_eq!(said(&post(&mut client, path, &toast(), TOAST).await).0, 404, "{path}");
    }
    for method in [http::Method::GET, http::Method::DELETE] {
        let mut request = client.request("/?token=a").body(()).unwrap();
        *request.method_mut() = method;
        assert_eq!(client.send(request, &[]).await.unwrap().status, 405);
    }
    assert_eq!(wns.running.sums().tokens.attempts, 0);
}

#[tokio::test]
async fn bad_headers_are_refused_with_a_sentence() {
    let wns = open(json!({})).await;
    let mut client = Client::connect(wns.running.addr()).await;
    let text = |value: &str| value.to_owned();
    let table: Vec<(Headers<'_>, &str)> = vec![
        (vec![("content-type", text("text/xml"))], "X-WNS-Type must"),
        (vec![("x-wns-type", text("toast")), ("content-type", text("text/xml"))], "X-WNS-Type must"),
        (vec![("x-wns-type", text("wns/toast"))], "Content-Type must"),
        (vec![("x-wns-type", text("wns/raw")), ("content-type", text("text/xml"))], "Content-Type must"),
        (
            vec![("x-wns-type", text("wns/tile")), ("content-type", text("application/json"))],
            "Content-Type must",
        ),
        ([toast(), vec![("x-wns-type", text("wns/tile"))]].concat(), "A header was specified more than once"),
        ([toast(), vec![("x-wns-ttl", text("-1"))]].concat(), "X-WNS-TTL must"),
        ([toast(), vec![("x-wns-ttl", text("soon"))]].concat(), "X-WNS-TTL must"),
        ([toast(), vec![("x-wns-cache-policy", text("maybe"))]].concat(), "A header has an unknown value"),
        ([toast(), vec![("x-wns-requestforstatus", text("yes"))]].concat(), "A header has an unknown value"),
        ([toast(), vec![("x-wns-tag", "a".repeat(17))]].concat(), "X-WNS-Tag must"),
        ([toast(), vec![("x-wns-tag", text("a b"))]].concat(), "X-WNS-Tag must"),
        ([toast(), vec![("x-wns-priority", text("5"))]].concat(), "X-WNS-PRIORITY must"),
        ([toast(), vec![("x-wns-suppresspopup", text("true"))]].concat(), "X-WNS-SuppressPopup"),
        (
            [raw(), vec![("x-wns-ttl", text("0")), ("x-wns-cache-policy", text("cache"))]].concat(),
            "Ttl value conflicts",
        ),
    ];
    for (headers, sentence) in &table {
        let reply = post(&mut client, "/?token=a", headers, TOAST).await;
        let (status, word, found) = said(&reply);
        assert_eq!((status, word), (400, "dropped"), "{headers:?}");
        assert!(found.starts_with(sentence), "{headers:?}: {found}");
    }
    assert_eq!(wns.running.counts("a").rejected as usize, table.len());
    let charset = vec![("x-wns-type", text("wns/badge")), ("content-type", text("text/xml; charset=utf-8"))];
    assert_eq!(post(&mut client, "/?token=a", &charset, b"<badge/>").await.status, 200);
}

#[tokio::test]
async fn payloads_have_a_limit_and_are_not_empty() {
    let wns = open(json!({})).await;
    let mut client = Client::connect(wns.running.addr()).await;
    for (bytes, status) in [(0, 400), (1, 200), (5000, 200), (5001, 413), (100_000, 413)] {
        let reply = post(&mut client, "/?token=a", &raw(), &vec![7; bytes]).await;
        assert_eq!(reply.status.as_u16(), status, "{bytes} bytes");
    }
}

#[tokio::test]
async fn a_body_in_chunks_is_not_supported() {
    let wns = open(json!({})).await;
    let pieces = futures_util::stream::iter([Ok::<_, std::io::Error>(TOAST)]);
    let request = reqwest::Client::new().post(format!("http://{}/?token=a", wns.running.addr()));
    let request = toast().into_iter().fold(request, |request, (name, value)| request.header(name, value));
    let reply = request.body(reqwest::Body::wrap_stream(pieces)).send().await.unwrap();
    assert_eq!(
        (reply.status().as_u16(), &reply.headers()["x-wns-status"]),
        (400, &"dropped".parse().unwrap())
    );
}

#[tokio::test]
async fn a_device_that_is_away_gets_its_tile_and_its_badge_later_and_no_toast() {
    let wns = open(json!({})).await;
    let mut client = Client::connect(wns.running.addr()).await;
    let channel = wns.open_channel(ChannelRequest::default());
    let xml = |kind: &str| vec![("x-wns-type", kind.to_owned()), ("content-type", "text/xml".to_owned())];
    let with = |headers: Headers<'static>, name: &'static str, value: &str| {
        [headers, vec![(name, value.to_owned())]].concat()
    };
    for (headers, body, word) in [
        (toast(), "toast", "dropped"),
        (xml("wns/tile"), "tile 1", "received"),
        (xml("wns/tile"), "tile 2", "received"),
        (xml("wns/badge"), "badge", "received"),
        (raw(), "raw 1", "received"),
        (with(raw(), "x-wns-cache-policy", "cache"), "raw 2", "received"),
    ] {
        let headers = with(headers, "x-wns-requestforstatus", "true");
        let reply = post(&mut client, path(&channel), &headers, body.as_bytes()).await;
        assert_eq!((reply.status.as_u16(), said(&reply).1), (200, word), "{body}");
        let status = reply.headers.get("x-wns-deviceconnectionstatus").map(|value| value.to_str().unwrap());
        assert_eq!(status, (word == "received").then_some("disconnected"), "{body}");
    }
    let mut messages = listen(&wns, &channel);
    let mut texts = Vec::new();
    while let Ok(message) = messages.try_recv() {
        texts.push(message.payload["text"].as_str().unwrap().to_owned());
    }
    assert_eq!(texts, ["tile 2", "badge", "raw 2"]);
    let counts = wns.running.counts(&channel.token);
    assert_eq!((counts.accepted, counts.rejected), (5, 1));
}

#[tokio::test]
async fn tokens_are_granted_to_clients_with_their_secret() {
    let clients = vec![client_of(Some("tenant-1"), "app", "secret"), client_of(None, "ms-app://s-1", "old")];
    let vendor = WnsOptions { clients, ..WnsOptions::default() };
    let wns = start(WnsConfig { vendor, ..WnsConfig::default() }).await;
    let old = "notify.windows.com";
    for (path, grant, id, secret, scope, status, error) in [
        (ENTRA, "client_credentials", "app", "secret", SCOPE, 200, Value::Null),
        (ENTRA, "client_credentials", "app", "secret", "https://wns.windows.com/.default/", 200, Value::Null),
        (ACCOUNT, "client_credentials", "ms-app://s-1", "old", old, 200, Value::Null),
        (ENTRA, "password", "app", "secret", SCOPE, 400, json!("unsupported_grant_type")),
        (ENTRA, "client_credentials", "", "secret", SCOPE, 400, json!("invalid_request")),
        (ENTRA, "client_credentials", "app", "", SCOPE, 401, json!("invalid_client")),
        (ENTRA, "client_credentials", "app", "wrong", SCOPE, 401, json!("invalid_client")),
        (ENTRA, "client_credentials", "other", "secret", SCOPE, 400, json!("unauthorized_client")),
        (
            "/tenant-2/oauth2/v2.0/token",
            "client_credentials",
            "app",
            "secret",
            SCOPE,
            400,
            json!("unauthorized_client"),
        ),
        (ENTRA, "client_credentials", "app", "secret", old, 400, json!("invalid_scope")),
        (ACCOUNT, "client_credentials", "ms-app://s-1", "wrong", old, 400, json!("invalid_client")),
    ] {
        let form = [("grant_type", grant), ("client_id", id), ("client_secret", secret), ("scope", scope)];
        let (found, body) = ask(wns.running.addr(), path, &form).await;
        assert_eq!((found, &body["error"]), (status, &error), "{form:?}: {body}");
    }
    let basic = reqwest::Client::new().post(format!("http://{}{ENTRA}", wns.running.addr()));
    let basic = basic.basic_auth("app", Some("secret"));
    let form = [("grant_type", "client_credentials"), ("scope", SCOPE)];
    assert_eq!(basic.form(&form).send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_sender_without_a_valid_token_is_refused() {
    let wns = start(WnsConfig::default()).await;
    let mut client = Client::connect(wns.running.addr()).await;
    assert_eq!(said(&post(&mut client, "/?token=a", &toast(), TOAST).await).0, 401);
    let good = token(wns.running.addr(), "app").await;
    let forged = good.replacen("YXBw", "YXBx", 1);
    assert_ne!(forged, good);
    for wrong in ["x", "stentor-emulator.99999999999.YXBw.AAAA", &forged] {
        let reply = post(&mut client, "/?token=a", &with_bearer(toast(), wrong), TOAST).await;
        assert_eq!(reply.status, 401, "{wrong}");
    }
    assert_eq!(post(&mut client, "/?token=a", &with_bearer(toast(), &good), TOAST).await.status, 200);

    let vendor = WnsOptions { token_life_s: 0, ..WnsOptions::default() };
    let short = start(WnsConfig { vendor, ..WnsConfig::default() }).await;
    let mut client = Client::connect(short.running.addr()).await;
    let headers = with_bearer(toast(), &token(short.running.addr(), "app").await);
    assert_eq!(post(&mut client, "/?token=a", &headers, TOAST).await.status, 401, "expired at once");
}

#[tokio::test]
async fn channels_belong_to_a_client_and_end() {
    let config = WnsConfig { strict_tokens: true, ..WnsConfig::default() };
    let wns = start(config).await;
    let mut client = Client::connect(wns.running.addr()).await;
    let request = ChannelRequest { token: None, client_id: Some("app".to_owned()) };
    let channel = wns.open_channel(request);
    let mut messages = listen(&wns, &channel);
    let own = with_bearer(toast(), &token(wns.running.addr(), "app").await);
    let other = with_bearer(toast(), &token(wns.running.addr(), "other").await);
    assert_eq!(post(&mut client, path(&channel), &own, TOAST).await.status, 200);
    assert_eq!(post(&mut client, path(&channel), &other, TOAST).await.status, 403);
    assert_eq!(post(&mut client, "/?token=unknown", &own, TOAST).await.status, 404);
    wns.running.devices().expire(&channel.token, None);
    assert_eq!(post(&mut client, path(&channel), &own, TOAST).await.status, 410);
    assert!(messages.recv().await.is_some() && messages.try_recv().is_err());
}

#[tokio::test]
async fn a_device_registers_at_the_control_port_and_gets_a_channel() {
    let wns = open(json!({})).await;
    let control = wns.running.control_addr().unwrap();
    let (status, channel) = rig::post(control, "/device/register", &json!({"client_id": "app"})).await;
    assert_eq!(status, 200);
    let (token, uri) = (channel["token"].as_str().unwrap(), channel["uri"].as_str().unwrap());
    assert_eq!(token.len(), 135);
    let mut client = Client::connect(wns.running.addr()).await;
    let reply = post(&mut client, &uri[uri.find("/?").unwrap()..], &raw(), b"x").await;
    assert_eq!((reply.status.as_u16(), wns.running.counts(token).accepted), (200, 1));
    assert_eq!(rig::post(control, "/device/register", &json!({"topic": "x"})).await.0, 400);
}
