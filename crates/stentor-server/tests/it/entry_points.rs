//! Attacks on every HTTP route: without a key, with an app's public credentials, with a key and as a device, with bodies that do not
//! arrive, in every form of that.

mod attempts;
mod victim;

use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::iter;
use reqwest::Method;
use serde_json::json;
use stentor_server::face::EntryRule;

use crate::harness::{Reading, Server, server_with};
use crate::limits::{Unfinished, metric, until};
use attempts::{Attempt, Credential, Ending};
use victim::Victim;

/// Longest time until a connection with a missing body has ended: the deadline of a second, and a margin for a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);
/// Connections at once.
const AT_ONCE: usize = 400;
/// Time between the starts of two attempts. Attempts that start together would end together, and such a burst is no limit of the server.
const PACE: Duration = Duration::from_millis(2);
/// A wait that a busy machine causes by itself. A message that waits for another app's connection waits for its deadline, a second.
const STALL: Duration = Duration::from_millis(600);
/// Methods to try on a route that does not list its own.
const METHODS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];

async fn hasty_server() -> Server {
    server_with(|config| {
        config.api.body_timeout_seconds = 1;
        config.api.header_timeout_seconds = 1;
        config.api.connection_idle_timeout_seconds = 1;
        config.api.import_idle_timeout_seconds = 1;
        config.api.imports_max_count = 64;
    })
    .await
}

/// Returns a path with names that exist nowhere.
fn named(path: &str) -> String {
    let mut named = String::new();
    for piece in path.split_inclusive('/') {
        match piece.split_once('{') {
            None => named.push_str(piece),
            Some((before, rest)) => {
                let (_, after) = rest.split_once('}').expect("a name ends");
                named.push_str(&format!("{before}nothing{after}"));
            }
        }
    }
    named
}

/// Returns the methods of a path.
async fn methods(server: &Server, path: &str) -> Vec<String> {
    let read = server.open(Method::TRACE, path).read().await;
    let known = read.headers.get("allow").map(|text| text.split(',').map(str::to_owned).collect::<Vec<_>>());
    let known = known.filter(|known| !known.is_empty() && read.status == 405);
    let known = known.unwrap_or_else(|| METHODS.map(str::to_owned).to_vec());
    known.into_iter().filter(|method| method != "HEAD" && method != "TRACE").collect()
}

/// Registers a device; returns its credentials.
async fn device(server: &Server, key: &str) -> (String, String) {
    let read = server.with_key(key, Method::POST, "/gateway/v1/devices").json(&json!({})).read().await;
    assert_eq!(read.status, 201, "{read:?}");
    (read.text("token"), read.text("secret"))
}

async fn attempts(server: &Server) -> Vec<Attempt> {
    let attacker = server.sender().await;
    let join = server.key(&attacker.id, &["join"]).await;
    let (token, secret) = device(server, &join).await;
    let credentials = [
        Credential::None,
        Credential::Key("join", join),
        Credential::Key("app", attacker.key.clone()),
        Credential::Device(token, secret),
    ];
    let mut attempts = Vec::new();
    for point in &server.entry_points {
        let path = named(&point.path);
        for method in methods(server, &path).await {
            for credential in &credentials {
                let ends_device = credential.is_device() && path.starts_with("/gateway/v1/device");
                // Requests that unregister the device would make the other attempts meaningless.
                if !ends_device {
                    attempts.extend(Attempt::all(&method, &path, credential, point.rule));
                }
            }
        }
    }
    attempts
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whatever_does_not_come_at_any_route_ends_in_time_and_another_app_goes_on() {
    let server = hasty_server().await;
    let attempts = attempts(&server).await;
    assert!(server.entry_points.len() > 90, "{} paths", server.entry_points.len());
    let victim = Victim::new(&server).await;
    let idle = victim.measure(Duration::from_secs(1)).await;
    let host = server.url.trim_start_matches("http://").to_owned();
    let host = host.as_str();
    let paced = iter(&attempts).then(async |attempt| {
        tokio::time::sleep(PACE).await;
        attempt
    });
    let made = paced.map(|attempt| async move { (attempt, attempt.make(host, PATIENCE).await) });
    let all = made.buffer_unordered(AT_ONCE).collect::<Vec<_>>();
    let (all, beside) = victim.beside(all).await;
    let open: Vec<_> = all.iter().filter(|(_, ending)| *ending == Ending::StillOpen).collect();
    assert!(open.is_empty(), "{} of {} are still open: {open:#?}", open.len(), all.len());
    let refused = beside.iter().filter(|(status, _)| *status != 202).count();
    assert_eq!(refused, 0, "another app is refused: {beside:?}");
    let p99 = |times: &[(u16, Duration)]| {
        let mut times: Vec<_> = times.iter().map(|(_, time)| *time).collect();
        times.sort();
        times[times.len() * 99 / 100]
    };
    let (idle, beside) = (p99(&idle), p99(&beside));
    assert!(beside <= (3 * idle).max(STALL), "{idle:?} alone, {beside:?} beside");
    for name in ["requests_at_work", "request_bodies_bytes", "replies_unread_bytes"] {
        until(&server, &format!("stentor_{name}"), 0).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn streams_of_one_connection_that_do_not_come_end_in_time_at_every_route() {
    let server = hasty_server().await;
    let attacker = server.sender().await;
    let victim = Victim::new(&server).await;
    let client = reqwest::Client::builder().no_proxy().http2_prior_knowledge().build().expect("a client");
    let mut streams = Vec::new();
    for point in server.entry_points.iter().filter(|point| !point.rule.lasts()) {
        for key in [None, Some(&attacker.key)] {
            let url = format!("{}{}", server.url, named(&point.path));
            let request = client.post(url).header("content-type", "application/json");
            let request = key.into_iter().fold(request, |request, key| request.bearer_auth(key));
            streams.push((point.path.clone(), Unfinished::begin(request, "{\"half\":")));
        }
    }
    let ends = async {
        for (path, stream) in streams {
            let answer = tokio::time::timeout(PATIENCE, stream.answer).await;
            assert!(answer.is_ok(), "{path} is still open");
        }
    };
    let ((), beside) = victim.beside(ends).await;
    assert!(beside.iter().all(|(status, _)| *status == 202), "{beside:?}");
}

#[tokio::test]
async fn the_heads_of_compressed_bodies_without_a_key_take_nothing_that_apps_share() {
    let server = server_with(|_| {}).await;
    let victim = Victim::new(&server).await;
    let host = server.url.trim_start_matches("http://").to_owned();
    let paths = ["/token", "/o/oauth2/token", "/oauth2/v4/token", "/checkin", "/c2dm/register3"];
    let mut held = Vec::new();
    for number in 0..100 {
        let path = paths[number % paths.len()];
        let attempt = Attempt::zstd_head("POST", path, &Credential::None, EntryRule::Open);
        held.push(attempt.begin(&host).await);
    }
    for _ in 0..20 {
        assert_eq!(victim.send().await.0, 202);
    }
    let bytes = metric(&server, "stentor_request_bodies_bytes").await;
    assert!(bytes <= 2 * 1_024 * 1_024, "{bytes} bytes for nobody");
}

#[tokio::test]
async fn a_device_takes_its_own_part_of_what_its_app_has_and_no_more() {
    let server = server_with(|_| {}).await;
    let (tenant, victim) = (server.sender().await, Victim::new(&server).await);
    let join = server.key(&tenant.id, &["join"]).await;
    let (token, secret) = device(&server, &join).await;
    let host = server.url.trim_start_matches("http://").to_owned();
    let credential = Credential::Device(token, secret);
    let mut held = Vec::new();
    for _ in 0..64 {
        let attempt = Attempt::zstd_head("POST", "/gateway/v1/upstream", &credential, EntryRule::Keyed);
        held.push(attempt.begin(&host).await);
    }
    let body = json!({"target": {"token": {"platform": "android", "provider": "null", "token": "t"}}, "data": {"k": "v"}});
    for _ in 0..20 {
        assert_eq!(victim.send().await.0, 202);
        let own = server.send(&tenant, Method::POST, "/v1/messages").json(&body).read().await;
        assert_eq!(own.status, 202, "the app itself goes on: {own:?}");
    }
    let bytes = metric(&server, "stentor_request_bodies_bytes").await;
    assert!(bytes <= 3 * 1_024 * 1_024, "{bytes} bytes for one device");
}
