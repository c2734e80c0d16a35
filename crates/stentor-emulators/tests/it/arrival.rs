//! A message is counted and delivered when it is accepted, not when its response is sent.

use crate::frames::{RST_STREAM, Raw};
use crate::rig::{self, ALERT, Client, hex, to_token};
use serde_json::{Value, json};
use stentor_emulators::RunningApns;
use stentor_emulators::faults::InjectedFault;
use tokio::io::AsyncWriteExt;

fn slow() -> Value {
    json!({"latency": {"kind": "fixed", "ms": 60_000.0}})
}

/// Waits until a push has arrived, and returns its accepted and rejected counts at that time.
async fn arrived(apns: &RunningApns, token: &str) -> (u32, u32) {
    while apns.counts(token).attempts == 0 {
        tokio::task::yield_now().await;
    }
    (apns.counts(token).accepted, apns.counts(token).rejected)
}

#[tokio::test]
async fn a_slow_push_is_taken_over_on_arrival_and_the_client_cannot_undo_it() {
    let apns = rig::apns(slow()).await;
    let mut raw = Raw::connect(apns.addr()).await;
    raw.push(1, &hex(1)).await;
    assert_eq!(arrived(&apns, &hex(1)).await, (1, 0));
    raw.write(RST_STREAM, 0, 1, &8_u32.to_be_bytes()).await;
    raw.push(3, &hex(2)).await;
    assert_eq!(arrived(&apns, &hex(2)).await, (1, 0));
    drop(raw);
    apns.set_policy(rig::read(json!({}))).unwrap();
    assert_eq!(Client::connect(apns.addr()).await.push(&hex(3)).await.unwrap().status, 200);
    let totals = apns.sums().tokens;
    assert_eq!((totals.attempts, totals.accepted, totals.tokens_accepted_twice), (3, 3, 0));
}

#[tokio::test]
async fn a_slow_rejection_is_counted_on_arrival() {
    let mut policy = slow();
    policy["scripts"] = json!([{"prefix": "", "then": {"error": {"code": "Unregistered"}}}]);
    let apns = rig::apns(policy).await;
    let mut client = Client::connect(apns.addr()).await;
    let _push = client.start_push(&hex(1)).await.unwrap();
    assert_eq!(arrived(&apns, &hex(1)).await, (0, 1));
}

#[tokio::test]
async fn a_slow_answer_is_counted_once() {
    let apns = rig::apns(json!({"latency": {"kind": "fixed", "ms": 1.0}})).await;
    let mut client = Client::connect(apns.addr()).await;
    assert_eq!(client.push(&hex(1)).await.unwrap().status, 200);
    assert_eq!((apns.counts(&hex(1)).attempts, apns.counts(&hex(1)).accepted), (1, 1));
}

#[tokio::test]
async fn a_device_has_the_message_before_the_sender_has_its_answer() {
    let apns = rig::apns(slow()).await;
    let token = apns.devices().register(Default::default());
    let mut messages = apns.devices().listen(&token).unwrap();
    let mut client = Client::connect(apns.addr()).await;
    let _push = client.start_push(&token).await.unwrap();
    let message = messages.recv().await.unwrap();
    assert_eq!(message.payload, serde_json::from_slice::<Value>(ALERT).unwrap());
}

#[tokio::test]
async fn a_slow_message_over_http_1_is_taken_over_on_arrival() {
    let fcm = rig::fcm(slow()).await;
    let body = to_token("abc").to_string();
    let mut stream = tokio::net::TcpStream::connect(fcm.addr()).await.unwrap();
    let head = format!(
        "POST /v1/projects/p/messages:send HTTP/1.1\r\nhost: fcm\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).await.unwrap();
    while fcm.counts("abc").attempts == 0 {
        tokio::task::yield_now().await;
    }
    drop(stream);
    assert_eq!(fcm.counts("abc").accepted, 1);
}

#[tokio::test]
async fn what_stalls_is_taken_over_only_when_the_policy_says_so() {
    for (taken_over, accepted) in [(false, 0), (true, 1)] {
        let apns = rig::apns(json!({"stall": {"tokens": [hex(1)], "taken_over": taken_over}})).await;
        let mut client = Client::connect(apns.addr()).await;
        let stalled = client.start_push(&hex(1)).await.unwrap();
        assert_eq!(arrived(&apns, &hex(1)).await, (accepted, 0));
        apns.set_policy(rig::read(json!({}))).unwrap();
        assert_eq!(rig::finish(stalled).await.unwrap().status, 200);
        assert_eq!(apns.counts(&hex(1)).accepted, 1, "the release does not count again");
    }
}

#[tokio::test]
async fn scripts_and_faults_that_stall_keep_to_the_same_choice() {
    let scripted = json!([{"token": hex(1), "answers": [{"answer": "stall"}]}]);
    for (taken_over, accepted) in [(false, 0), (true, 1)] {
        let apns = rig::apns(json!({"scripts": scripted, "stall": {"taken_over": taken_over}})).await;
        let mut client = Client::connect(apns.addr()).await;
        let _scripted = client.start_push(&hex(1)).await.unwrap();
        assert_eq!(arrived(&apns, &hex(1)).await, (accepted, 0));
        assert_eq!(client.push(&hex(2)).await.unwrap().status, 200, "the choice alone stalls nothing");
        apns.inject(InjectedFault::Stall { on: true });
        let _faulty = client.start_push(&hex(3)).await.unwrap();
        assert_eq!(arrived(&apns, &hex(3)).await, (accepted, 0));
    }
}

#[tokio::test]
async fn an_unknown_word_in_the_choice_is_refused() {
    let apns = rig::apns(json!({})).await;
    let url = format!("http://{}/policy", apns.control_addr().unwrap());
    let policy = json!({"stall": {"all": true, "taken": true}});
    let reply = reqwest::Client::new().put(url).json(&policy).send().await.unwrap();
    assert_eq!(reply.status(), 400);
}
