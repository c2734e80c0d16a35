//! Replies are bounded in bytes, for requests of any size, and unread replies count towards the limits of the caller.

use reqwest::Method;
use serde_json::{Value, json};
use stentor_wire::xmlrpc::{Call, multicall, read_response, results_of_multicall, write_call};
use stentor_wire::{DocumentLimits, Value as WireValue};

use crate::harness::{Reading, Server, Tenant, durable_server, server};
use crate::limits::{metric, until};

/// Size limit of a page and of nearly every other reply.
const REPLY_MAX_BYTES: usize = 1_024 * 1_024;

/// Makes schedules of 60 KB.
async fn long_schedules(server: &Server, tenant: &Tenant, count: usize) {
    for number in 0..count {
        let data: serde_json::Map<_, _> =
            (0..15).map(|field| (format!("k{field}"), json!("v".repeat(3_900)))).collect();
        let message = json!({"target": "everyone", "data": data});
        let name = format!("schedule {number}");
        let body = json!({"name": name, "cron": "0 9 * * *", "time_zone": "UTC", "message": message});
        let made = server.send(tenant, Method::POST, "/v1/schedules").json(&body).read().await;
        assert_eq!(made.status, 201, "{made:?}");
    }
}

async fn pages_end_at_their_bytes(server: &Server) {
    let tenant = server.sender().await;
    long_schedules(server, &tenant, 40).await;
    let (mut seen, mut after, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        let path = format!("/v1/schedules?limit=1000{after}");
        let text = server
            .send(&tenant, Method::GET, &path)
            .send()
            .await
            .expect("an answer")
            .text()
            .await
            .expect("text");
        assert!(text.len() <= REPLY_MAX_BYTES, "{} bytes", text.len());
        let page: Value = serde_json::from_str(&text).expect("JSON");
        seen.extend(page["schedules"].as_array().expect("a list").iter().map(|one| one["id"].to_string()));
        pages += 1;
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => break,
        }
    }
    seen.dedup();
    assert_eq!((seen.len(), pages), (40, 3));
}

#[tokio::test]
async fn a_page_ends_at_a_mebibyte_with_a_cursor_and_nothing_is_left_out() {
    pages_end_at_their_bytes(&server().await).await;
    pages_end_at_their_bytes(&durable_server(tempfile::tempdir().expect("a folder")).await).await;
}

#[tokio::test]
async fn many_calls_in_one_request_share_one_reply() {
    let server = server().await;
    let tenant = server.sender().await;
    long_schedules(&server, &tenant, 20).await;
    let params = vec![WireValue::Record(vec![("limit".to_owned(), WireValue::Int(1_000))])];
    let call = Call { method: "schedules.list".into(), params };
    let document = write_call(&multicall(&vec![call; 100])).expect("a document");
    let request = server.client.post(format!("{}/rpc", server.url)).bearer_auth(&tenant.key);
    let answer = request.header("content-type", "text/xml").body(document).send().await.expect("an answer");
    let bytes = answer.bytes().await.expect("a body");
    assert!(bytes.len() <= 2 * REPLY_MAX_BYTES, "{} bytes", bytes.len());
    let limits = DocumentLimits { document_max_bytes: 8 * REPLY_MAX_BYTES, ..DocumentLimits::default() };
    let results = read_response(&bytes, &limits).expect("a response").expect("results");
    let results = results_of_multicall(&results).expect("one for each");
    let answered = results.iter().filter(|one| one.is_ok()).count();
    assert_eq!((results.len(), answered), (100, 1), "with the second it would be too long");
    let refused = results[99].as_ref().expect_err("refused");
    assert!(format!("{refused:?}").contains("request the rest separately"), "{refused:?}");
}

#[tokio::test]
async fn what_a_face_tells_of_itself_counts_among_the_replies_of_a_request() {
    let server = server().await;
    let tenant = server.tenant().await;
    for (method, params) in [
        ("system.listMethods", Vec::new()),
        ("system.methodHelp", vec![WireValue::from("messages.send")]),
        ("nothing", vec![WireValue::from("x")]),
    ] {
        let call = Call { method: method.into(), params };
        let document = write_call(&multicall(&vec![call; 1_000])).expect("a document");
        let request = server.client.post(format!("{}/rpc", server.url)).bearer_auth(&tenant.key);
        let answer =
            request.header("content-type", "text/xml").body(document).send().await.expect("an answer");
        let bytes = answer.bytes().await.expect("a body");
        assert!(bytes.len() <= 2 * REPLY_MAX_BYTES, "{method}: {} bytes", bytes.len());
    }
}

#[tokio::test]
async fn whatever_a_request_has_in_it_a_refusal_is_short() {
    let server = server().await;
    let tenant = server.sender().await;
    let long = "x".repeat(100_000);
    let mut unknown = json!({"target": "everyone"});
    unknown[&long] = json!(1);
    for body in [
        unknown,
        json!({"target": {"topic": long}}),
        json!({"target": "everyone", "collapse_key": "\n".repeat(50_000)}),
        json!({"target": {"condition": "'a' in topics && ".repeat(5_000)}}),
        json!({"target": "everyone", "data": {&long: {"a": 1}}}),
    ] {
        let request = server.send(&tenant, Method::POST, "/v1/messages").json(&body);
        let answer = request.send().await.expect("an answer");
        assert!(answer.status().is_client_error(), "{}", answer.status());
        let text = answer.text().await.expect("text");
        assert!(text.len() <= 4_096, "{} bytes: {}", text.len(), &text[..500]);
    }
}

#[tokio::test]
async fn elements_of_one_envelope_share_one_reply() {
    let server = server().await;
    let tenant = server.sender().await;
    long_schedules(&server, &tenant, 20).await;
    let calls = "<ListSchedules xmlns='urn:stentor:v1'><limit>1000</limit></ListSchedules>".repeat(100);
    let document = format!(
        "<s:Envelope xmlns:s='http://schemas.xmlsoap.org/soap/envelope/'><s:Body>{calls}</s:Body></s:Envelope>"
    );
    let request = server.client.post(format!("{}/soap", server.url)).bearer_auth(&tenant.key);
    let answer = request.header("content-type", "text/xml").body(document).send().await.expect("an answer");
    let text = answer.text().await.expect("text");
    assert!(text.len() <= 2 * REPLY_MAX_BYTES, "{} bytes", text.len());
    assert!(text.contains("payload_too_large"), "{}", &text[text.len() - 500..]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_read_counts_for_its_app_and_another_app_is_answered() {
    let server = server().await;
    let (greedy, other) = (server.sender().await, server.sender().await);
    long_schedules(&server, &greedy, 20).await;
    // Takes a kibibyte of each reply, and no more until it is read.
    let client = reqwest::Client::builder().no_proxy().http2_prior_knowledge();
    let client = client.http2_initial_stream_window_size(1_024).build().expect("a client");
    let mut held = Vec::new();
    for _ in 0..24 {
        let url = format!("{}/v1/schedules?limit=1000", server.url);
        let answer = client.get(url).bearer_auth(&greedy.key).send().await.expect("an answer");
        if answer.status() == 429 {
            break;
        }
        assert_eq!(answer.status(), 200);
        held.push(answer);
    }
    assert!((10..=17).contains(&held.len()), "{} pages are held for one app", held.len());
    let bytes = metric(&server, "stentor_replies_unread_bytes").await;
    assert!((1..=17 * REPLY_MAX_BYTES as u64).contains(&bytes), "{bytes} bytes");
    assert_eq!(server.send(&other, Method::GET, "/v1/schedules?limit=1000").read().await.status, 200);
    drop(held);
    until(&server, "stentor_replies_unread_bytes", 0).await;
    assert_eq!(server.send(&greedy, Method::GET, "/v1/schedules?limit=1000").read().await.status, 200);
}
