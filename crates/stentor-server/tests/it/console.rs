//! The console: its files, and the sessions with which a browser calls the API.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use reqwest::{Method, RequestBuilder};
use serde_json::json;
use stentor_core::ports::clock::Clock;
use stentor_core::time::Timestamp;

use crate::harness::{
    Read, Reading, Server, Tenant, durable_server, durable_server_at, durable_server_with, server,
};

/// A clock that goes only when the test moves it.
struct SetClock(AtomicI64);

impl Clock for SetClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::Relaxed))
    }
}

/// A browser with an open session.
struct Browser {
    cookie: String,
    csrf: String,
}

impl Browser {
    async fn log_in(server: &Server, key: &str) -> Self {
        let opened = login(server, key).read().await;
        assert_eq!(opened.status, 200, "{opened:?}");
        let (cookie, _) = opened.headers["set-cookie"].split_once(';').expect("attributes");
        Self { cookie: cookie.to_owned(), csrf: opened.text("csrf") }
    }

    /// Starts a request as any page of any site can make it.
    fn send(&self, server: &Server, method: Method, path: &str) -> RequestBuilder {
        server.open(method, path).header("cookie", &self.cookie)
    }

    /// Starts a request as a page of the console makes it.
    fn change(&self, server: &Server, method: Method, path: &str) -> RequestBuilder {
        self.send(server, method, path).header("x-stentor-csrf", &self.csrf)
    }

    /// Returns the status of a read with the cookie.
    async fn status(&self, server: &Server) -> u16 {
        self.send(server, Method::GET, "/v1/apps").read().await.status
    }
}

fn login(server: &Server, key: &str) -> RequestBuilder {
    server.open(Method::POST, "/console/session").json(&json!({"key": key}))
}

fn code(read: &Read) -> (u16, String) {
    let (status, code, _) = read.refusal();
    (status, code)
}

#[tokio::test]
async fn a_session_reads_and_changes_what_its_key_may_and_nothing_else() {
    let server = server().await;
    let (tenant, other) = (server.sender().await, server.tenant().await);
    let key = server.key(&tenant.id, &["send"]).await;
    let browser = Browser::log_in(&server, &key).await;
    let shown = browser.send(&server, Method::GET, "/console/session").read().await;
    let scopes = json!(["send"]);
    assert_eq!(
        (&shown.body["by"], &shown.body["app"], &shown.body["scopes"]),
        (&json!("key"), &json!(tenant.id), &scopes)
    );
    assert_eq!(
        (shown.text("csrf"), shown.headers["cache-control"].as_str()),
        (browser.csrf.clone(), "no-store")
    );
    let message = json!({"target": "everyone", "notification": {"title": "from a browser"}});
    let sent = browser.change(&server, Method::POST, "/v1/messages").json(&message).read().await;
    assert_eq!(sent.status, 202, "{sent:?}");
    let elsewhere = browser.send(&server, Method::GET, &format!("/v1/apps/{}", other.id)).read().await;
    assert_eq!(code(&elsewhere), (404, "not_found".to_owned()));
    let device = json!({"platform": "android", "provider": "null", "token": "t"});
    let beyond = browser.change(&server, Method::POST, "/v1/devices").json(&device).read().await;
    assert_eq!(code(&beyond), (403, "forbidden".to_owned()));
    let operator = browser.send(&server, Method::GET, "/v1/status").read().await;
    assert_eq!(code(&operator), (403, "forbidden".to_owned()));
    let root = Browser::log_in(&server, &server.root).await;
    assert_eq!(root.send(&server, Method::GET, "/v1/status").read().await.status, 200);
}

#[tokio::test]
async fn a_change_that_does_not_come_from_a_page_of_the_session_is_refused() {
    let server = server().await;
    let (mine, other) =
        (Browser::log_in(&server, &server.root).await, Browser::log_in(&server, &server.root).await);
    let create = |request: RequestBuilder| request.json(&json!({"name": "an app"})).read();
    let attempts = [
        mine.send(&server, Method::POST, "/v1/apps"),
        mine.send(&server, Method::POST, "/v1/apps").header("x-stentor-csrf", &other.csrf),
        mine.change(&server, Method::POST, "/v1/apps").header("sec-fetch-site", "cross-site"),
        mine.change(&server, Method::POST, "/v1/apps").header("sec-fetch-site", "same-site"),
        mine.send(&server, Method::DELETE, "/console/session"),
    ];
    for attempt in attempts {
        let refused = create(attempt).await;
        assert_eq!(code(&refused), (403, "forbidden".to_owned()));
    }
    let read = mine.send(&server, Method::GET, "/v1/apps").header("sec-fetch-site", "same-site").read().await;
    assert_eq!(code(&read), (403, "forbidden".to_owned()));
    let apps = server.root(Method::GET, "/v1/apps").read().await;
    assert_eq!(apps.body["apps"], json!([]));
    let own = mine.change(&server, Method::POST, "/v1/apps").header("sec-fetch-site", "same-origin");
    assert_eq!(create(own).await.status, 201);
}

#[tokio::test]
async fn a_login_needs_a_key_and_json_and_a_page_of_its_own() {
    let server = server().await;
    let tenant = server.tenant().await;
    let join = server.key(&tenant.id, &["join"]).await;
    let unknown = format!("sk_{}", "a".repeat(43));
    assert_eq!(code(&login(&server, &unknown).read().await), (401, "unauthorized".to_owned()));
    assert_eq!(code(&login(&server, &join).read().await), (403, "forbidden".to_owned()));
    let foreign = login(&server, &tenant.key).header("sec-fetch-site", "cross-site").read().await;
    assert_eq!(code(&foreign), (403, "forbidden".to_owned()));
    let form = server.open(Method::POST, "/console/session").header("content-type", "text/plain");
    let form = form.body(json!({"key": tenant.key}).to_string()).read().await;
    assert_eq!(code(&form), (415, "unsupported_media_type".to_owned()));
    let long = login(&server, &"k".repeat(2_000)).read().await;
    assert_eq!(code(&long), (413, "payload_too_large".to_owned()));
    for refused in [form, foreign, long] {
        assert!(!refused.headers.contains_key("set-cookie"), "{refused:?}");
    }
}

#[tokio::test]
async fn the_cookie_is_out_of_reach_of_scripts_and_other_sites_and_bound_to_tls_where_there_is_tls() {
    let server = server().await;
    let plain = login(&server, &server.root).read().await;
    let cookie = &plain.headers["set-cookie"];
    assert!(cookie.starts_with("stentor_console=ses_"), "{cookie}");
    assert!(cookie.ends_with("; Path=/; Max-Age=3600; HttpOnly; SameSite=Strict"), "{cookie}");
    assert!(!cookie.contains(server.root.trim_start_matches("sk_")), "the key");
    let behind = login(&server, &server.root).header("x-forwarded-proto", "https").read().await;
    let cookie = behind.headers["set-cookie"].clone();
    assert!(cookie.starts_with("__Host-stentor_console=ses_") && cookie.ends_with("; Secure"), "{cookie}");
    // A cookie that another host of the domain may have set is not read over TLS.
    let (_, value) = cookie.split_once('=').expect("a value");
    let (value, _) = value.split_once(';').expect("attributes");
    let planted = server.open(Method::GET, "/v1/apps").header("x-forwarded-proto", "https");
    let planted = planted.header("cookie", format!("stentor_console={value}")).read().await;
    assert_eq!(code(&planted), (401, "unauthorized".to_owned()));
}

#[tokio::test]
async fn a_session_ends_with_its_logout_and_with_its_key_and_survives_a_restart_otherwise() {
    let server = durable_server(tempfile::tempdir().expect("a folder")).await;
    let tenant = server.tenant().await;
    let [out, stays] =
        [Browser::log_in(&server, &tenant.key).await, Browser::log_in(&server, &tenant.key).await];
    let ended = out.change(&server, Method::DELETE, "/console/session").read().await;
    assert_eq!(ended.status, 204, "{ended:?}");
    assert!(ended.headers["set-cookie"].starts_with("stentor_console=; Path=/; Max-Age=0"), "{ended:?}");
    assert_eq!((out.status(&server).await, stays.status(&server).await), (401, 200));
    let operator = Browser::log_in(&server, &server.root).await;
    let server = durable_server(server.stop().await).await;
    assert_eq!((stays.status(&server).await, operator.status(&server).await), (200, 200));
    assert_eq!(
        out.status(&server).await,
        401,
        "a copy of its cookie opens nothing at a server that starts later"
    );
    delete_keys(&server, &tenant).await;
    assert_eq!(stays.status(&server).await, 401);
    let other = format!("sk_{}", "b".repeat(43));
    let server = durable_server_with(server.stop().await, |config| config.api.root_key = other.into()).await;
    assert_eq!(operator.status(&server).await, 401, "the root key is another one");
}

async fn delete_keys(server: &Server, tenant: &Tenant) {
    let path = format!("/v1/apps/{}/keys", tenant.id);
    let keys = server.root(Method::GET, &path).read().await;
    for key in keys.body["keys"].as_array().expect("keys") {
        let path = format!("{path}/{}", key["id"].as_str().expect("an id"));
        assert_eq!(server.root(Method::DELETE, &path).read().await.status, 204);
    }
}

#[tokio::test]
async fn a_session_ends_after_its_time() {
    let clock = Arc::new(SetClock(AtomicI64::new(1_800_000_000_000)));
    let server = durable_server_at(clock.clone(), tempfile::tempdir().expect("a folder")).await;
    let browser = Browser::log_in(&server, &server.root).await;
    clock.0.fetch_add(3_599_999, Ordering::Relaxed);
    assert_eq!(browser.status(&server).await, 200);
    clock.0.fetch_add(1, Ordering::Relaxed);
    assert_eq!(browser.status(&server).await, 401);
}

#[tokio::test]
async fn more_logins_of_one_app_than_are_allowed_wait_and_delay_no_other_app() {
    let server = server().await;
    let (tenant, other) = (server.tenant().await, server.tenant().await);
    let mut refused = None;
    for _ in 0..64 {
        let answer = login(&server, &tenant.key).read().await;
        if answer.status != 200 {
            refused = Some(answer);
            break;
        }
    }
    let refused = refused.expect("a limit");
    assert_eq!(code(&refused), (429, "rate_limited".to_owned()));
    assert_eq!(refused.headers["retry-after"], "1");
    assert_eq!(login(&server, &other.key).read().await.status, 200);
}

#[tokio::test]
async fn a_cookie_opens_no_stream_and_no_other_face_and_nothing_where_there_is_no_console() {
    let server = durable_server(tempfile::tempdir().expect("a folder")).await;
    let tenant = server.tenant().await;
    let browser = Browser::log_in(&server, &tenant.key).await;
    for (method, path) in [(Method::GET, "/v1/upstream"), (Method::POST, "/rpc"), (Method::POST, "/soap")] {
        let request = browser.change(&server, method, path).header("content-type", "text/xml");
        // Each in its own form; the cookie is not looked at.
        let answer = request.body("<a/>").read().await;
        assert!(answer.body.to_string().contains("the request has no API key"), "{path}: {answer:?}");
    }
    assert_eq!(browser.status(&server).await, 200);
    let server = durable_server_with(server.stop().await, |config| config.console.enabled = false).await;
    assert_eq!(browser.status(&server).await, 401);
    let page = server.open(Method::GET, "/console").read().await;
    assert_eq!(code(&page), (404, "not_found".to_owned()));
}

#[tokio::test]
async fn every_file_is_guarded_and_is_sent_once_as_long_as_it_stays_the_same() {
    let server = server().await;
    let page = server.open(Method::GET, "/console").read().await;
    let text = page.body.as_str().expect("a page").to_owned();
    let named = text.split('"').filter(|word| word.starts_with("/console/")).map(str::to_owned);
    let mut paths: Vec<_> = named.chain(["/console".to_owned(), "/console/".to_owned()]).collect();
    assert!(paths.len() >= 5, "{paths:?}");
    for path in &paths {
        let file = server.open(Method::GET, path).read().await;
        assert_eq!(file.status, 200, "{path}");
        let again =
            server.open(Method::GET, path).header("if-none-match", &file.headers["etag"]).read().await;
        assert_eq!((again.status, &again.body), (304, &json!("")), "{path}");
    }
    paths.push("/console/none.js".to_owned());
    paths.push("/console/session".to_owned());
    for path in paths {
        let answer = server.open(Method::GET, &path).read().await;
        let policy = &answer.headers["content-security-policy"];
        for rule in
            ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "trusted-types 'none'"]
        {
            assert!(policy.contains(rule), "{path}: {policy}");
        }
        assert!(!policy.contains("unsafe"), "{path}: {policy}");
        let guards = ["x-content-type-options", "cross-origin-resource-policy", "referrer-policy"];
        let guards = guards.map(|name| answer.headers[name].as_str());
        assert_eq!(guards, ["nosniff", "same-origin", "no-referrer"], "{path}");
    }
}
