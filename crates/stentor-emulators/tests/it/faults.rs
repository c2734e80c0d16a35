//! Faults of connections and streams, seen frame by frame.

use crate::frames::{GOAWAY, HEADERS, RST_STREAM, Raw, SETTINGS};
use crate::rig::{self, Client, hex};
use serde_json::json;
use std::time::{Duration, Instant};
use stentor_emulators::faults::InjectedFault;
use stentor_emulators::policy::AfterGoAway;

const REFUSED_STREAM: u32 = 7;
const INTERNAL_ERROR: u32 = 2;

#[tokio::test]
async fn goaway_names_the_last_processed_stream_and_the_rest_is_not_counted() {
    let apns = rig::apns(json!({"goaway": {"after_requests": 2}})).await;
    let mut raw = Raw::connect(apns.addr()).await;
    for (number, stream) in [(1, 1), (2, 3), (3, 5)] {
        raw.push(stream, &hex(number)).await;
    }
    let frames = raw.read_to_end().await;
    let goaway = frames.iter().find(|frame| frame.kind == GOAWAY).unwrap();
    assert_eq!(goaway.number(), 3);
    let answered: Vec<u32> = frames.iter().filter(|f| f.kind == HEADERS).map(|f| f.stream).collect();
    assert_eq!(answered, [1, 3]);
    assert_eq!(apns.counts(&hex(3)).attempts, 0);
    assert_eq!((apns.sums().tokens.accepted, apns.sums().wire.goaways), (2, 1));
}

#[tokio::test]
async fn goaway_may_leave_the_latest_streams_unprocessed() {
    let apns = rig::apns(json!({"goaway": {"after_requests": 4, "unprocessed": 2}})).await;
    let mut raw = Raw::connect(apns.addr()).await;
    for number in 0..4 {
        raw.push(number * 2 + 1, &hex(number)).await;
    }
    assert_eq!(raw.read_kind(GOAWAY).await.number(), 3);
    raw.read_to_end().await;
    assert_eq!(apns.sums().tokens.accepted, 2);
    assert_eq!(apns.sums().wire.unprocessed, 2);
}

#[tokio::test]
async fn a_draining_connection_answers_what_it_has_taken() {
    let policy = json!({"goaway": {"after_requests": 1}, "latency": {"kind": "fixed", "ms": 50.0}});
    let apns = rig::apns(policy).await;
    let mut raw = Raw::connect(apns.addr()).await;
    raw.push(1, &hex(1)).await;
    let kinds: Vec<u8> = raw.read_to_end().await.iter().map(|frame| frame.kind).collect();
    let position = |kind| kinds.iter().position(|found| *found == kind).unwrap();
    assert!(position(GOAWAY) < position(HEADERS));
}

#[tokio::test]
async fn a_closing_connection_loses_the_answers_that_wait_but_not_the_messages() {
    let policy = json!({"goaway": {"after_requests": 1, "then": "close"}, "latency": {"kind": "fixed", "ms": 60000.0}});
    let apns = rig::apns(policy).await;
    let mut raw = Raw::connect(apns.addr()).await;
    raw.push(1, &hex(1)).await;
    let frames = raw.read_to_end().await;
    assert!(frames.iter().all(|frame| frame.kind != HEADERS && frame.kind != RST_STREAM));
    let counts = apns.counts(&hex(1));
    assert_eq!((counts.attempts, counts.accepted), (1, 1));
}

#[tokio::test]
async fn goaway_can_be_said_at_once() {
    let apns = rig::apns(json!({})).await;
    let mut raw = Raw::connect(apns.addr()).await;
    raw.push(1, &hex(1)).await;
    raw.read_stream(1).await;
    apns.inject(InjectedFault::Goaway { then: AfterGoAway::Linger, code: 0 });
    assert_eq!(raw.read_kind(GOAWAY).await.number(), 1);
    raw.push(3, &hex(2)).await;
    raw.write(6, 0, 0, b"pingping").await;
    let pong = raw.read().await.unwrap();
    assert_eq!((pong.kind, pong.flags), (6, 1), "the connection lingers");
    assert_eq!(apns.counts(&hex(2)).attempts, 0);
}

#[tokio::test]
async fn some_streams_are_reset() {
    let apns = rig::apns(json!({"resets": {"every": 2, "code": "internal_error"}})).await;
    let mut raw = Raw::connect(apns.addr()).await;
    raw.push(1, &hex(1)).await;
    assert_eq!(raw.read_stream(1).await[0].kind, HEADERS);
    raw.push(3, &hex(2)).await;
    let reset = &raw.read_stream(3).await[0];
    assert_eq!((reset.kind, reset.number()), (RST_STREAM, INTERNAL_ERROR));
    let counts = apns.counts(&hex(2));
    assert_eq!((counts.attempts, counts.accepted), (1, 0));
}

#[tokio::test]
async fn the_next_requests_can_be_refused() {
    let apns = rig::apns(json!({})).await;
    apns.inject(serde_json::from_value(json!({"fault": "reset_next", "requests": 1})).unwrap());
    let mut client = Client::connect(apns.addr()).await;
    let error = client.push(&hex(1)).await.unwrap_err();
    assert_eq!(error.reason(), Some(h2::Reason::REFUSED_STREAM));
    assert_eq!(client.push(&hex(1)).await.unwrap().status, 200);
}

#[tokio::test]
async fn the_limit_is_one_stream_until_the_first_accepted_push() {
    let apns = rig::apns(json!({"streams": {"initial": 1, "after_reject": 1}})).await;
    let mut raw = Raw::connect(apns.addr()).await;
    assert_eq!(raw.read_kind(SETTINGS).await.stream_limit(), Some(1));
    raw.acknowledge_settings().await;
    raw.push(1, &hex(1)).await;
    assert_eq!(raw.read_kind(SETTINGS).await.stream_limit(), Some(1000));
    raw.acknowledge_settings().await;
    raw.push(3, &hex(2)).await;
    raw.push(5, &hex(3)).await;
    assert_eq!(raw.read_stream(3).await[0].kind, HEADERS);
    assert_eq!(raw.read_stream(5).await[0].kind, HEADERS);
    assert_eq!(apns.sums().wire.refused, 0);
}

#[tokio::test]
async fn a_rejection_lowers_the_limit_and_success_raises_it() {
    let policy = json!({
        "streams": {"after_reject": 1},
        "scripts": [{"token": hex(1), "then": {"error": {"code": "Unregistered"}}}],
    });
    let apns = rig::apns(policy).await;
    let mut raw = Raw::connect(apns.addr()).await;
    assert_eq!(raw.read_kind(SETTINGS).await.stream_limit(), Some(1000));
    raw.push(1, &hex(1)).await;
    assert_eq!(raw.read_kind(SETTINGS).await.stream_limit(), Some(1));
    raw.push(3, &hex(2)).await;
    assert_eq!(raw.read_kind(SETTINGS).await.stream_limit(), Some(1000));
}

#[tokio::test]
async fn a_lowered_limit_is_kept_once_it_is_acknowledged() {
    let policy = json!({"streams": {"steps": [{"after_requests": 1, "limit": 1}]}, "stall": {"all": true}});
    let apns = rig::apns(policy).await;
    let mut raw = Raw::connect(apns.addr()).await;
    assert_eq!(raw.read_kind(SETTINGS).await.stream_limit(), Some(1000));
    raw.acknowledge_settings().await;
    raw.push(1, &hex(1)).await;
    assert_eq!(raw.read_kind(SETTINGS).await.stream_limit(), Some(1));
    raw.acknowledge_settings().await;
    raw.ping().await;
    raw.push(3, &hex(2)).await;
    let reset = &raw.read_stream(3).await[0];
    assert_eq!((reset.kind, reset.number()), (RST_STREAM, REFUSED_STREAM));
    assert_eq!(apns.sums().wire.refused, 1);
}

#[tokio::test]
async fn an_excess_of_streams_may_end_in_goaway() {
    let policy = json!({"streams": {"initial": 1, "on_excess": "go_away"}, "stall": {"all": true}});
    let apns = rig::apns(policy).await;
    let mut raw = Raw::connect(apns.addr()).await;
    raw.read_kind(SETTINGS).await;
    raw.acknowledge_settings().await;
    raw.ping().await;
    raw.push(1, &hex(1)).await;
    raw.push(3, &hex(2)).await;
    let goaway = raw.read_kind(GOAWAY).await;
    assert_eq!((goaway.number(), goaway.payload[7]), (1, 7));
    assert!(goaway.payload.ends_with(b"Maximum active streams violated for this endpoint."));
}

#[tokio::test]
async fn a_stalled_push_is_answered_and_counted_only_when_released() {
    let apns = rig::apns(json!({"stall": {"tokens": [hex(1)]}})).await;
    let mut client = Client::connect(apns.addr()).await;
    let stalled = client.start_push(&hex(1)).await.unwrap();
    assert_eq!(client.push(&hex(2)).await.unwrap().status, 200);
    assert_eq!((apns.counts(&hex(1)).attempts, apns.counts(&hex(1)).accepted), (1, 0));
    apns.set_policy(rig::read(json!({}))).unwrap();
    assert_eq!(rig::finish(stalled).await.unwrap().status, 200);
    assert_eq!(apns.counts(&hex(1)).accepted, 1);
}

#[tokio::test]
async fn everything_can_be_stalled_and_released() {
    let apns = rig::apns(json!({})).await;
    apns.inject(InjectedFault::Stall { on: true });
    let mut client = Client::connect(apns.addr()).await;
    let mut stalled = Vec::new();
    for number in 0..10 {
        stalled.push(client.start_push(&hex(number)).await.unwrap());
    }
    let last = stalled.pop().unwrap();
    while apns.sums().tokens.attempts < 10 {
        tokio::task::yield_now().await;
    }
    assert_eq!(apns.sums().tokens.accepted, 0);
    apns.inject(InjectedFault::Stall { on: false });
    assert_eq!(rig::finish(last).await.unwrap().status, 200);
}

#[tokio::test]
async fn a_stalled_push_that_the_client_gives_up_is_not_counted() {
    let apns = rig::apns(json!({"stall": {"tokens": [hex(1)]}})).await;
    let mut raw = Raw::connect(apns.addr()).await;
    raw.push(1, &hex(1)).await;
    raw.write(RST_STREAM, 0, 1, &8_u32.to_be_bytes()).await;
    raw.push(3, &hex(2)).await;
    raw.read_stream(3).await;
    apns.set_policy(rig::read(json!({}))).unwrap();
    raw.push(5, &hex(3)).await;
    raw.read_stream(5).await;
    assert_eq!(apns.counts(&hex(1)).accepted, 0);
}

#[tokio::test]
async fn latency_delays_answers_but_not_each_other() {
    let apns = rig::apns(json!({"latency": {"kind": "fixed", "ms": 100.0}})).await;
    let mut client = Client::connect(apns.addr()).await;
    let started = Instant::now();
    let mut pushes = Vec::new();
    for number in 0..50 {
        pushes.push(client.start_push(&hex(number)).await.unwrap());
    }
    for push in pushes {
        rig::finish(push).await.unwrap();
    }
    assert!(started.elapsed() >= Duration::from_millis(100));
    assert!(started.elapsed() < Duration::from_secs(4), "one after the other would take 5 s");
}

#[tokio::test]
async fn stopping_closes_connections_and_frees_the_port() {
    let apns = rig::apns(json!({})).await;
    let address = apns.addr();
    let client = Client::connect(address).await;
    apns.stop().await;
    client.connection.await.unwrap().ok();
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn a_client_that_keeps_to_the_limit_is_never_refused() {
    let fcm = rig::fcm(json!({})).await;
    let client = Client::connect(fcm.addr()).await;
    let mut pipes = tokio::task::JoinSet::new();
    for pipe in 0..100 {
        let (mut send, address) = (client.send.clone(), fcm.addr());
        pipes.spawn(async move {
            for number in 0..50 {
                let body = rig::to_token(&format!("t-{pipe}-{number}")).to_string();
                let request = http::Request::post(format!("http://{address}/v1/projects/p/messages:send"));
                send = send.ready().await.unwrap();
                let (response, mut stream) = send.send_request(request.body(()).unwrap(), false).unwrap();
                stream.send_data(body.into(), true).unwrap();
                assert_eq!(rig::finish(response).await.unwrap().status, 200);
            }
        });
    }
    pipes.join_all().await;
    let totals = fcm.sums().tokens;
    assert_eq!((totals.tokens, totals.accepted, totals.tokens_accepted_twice), (5000, 5000, 0));
}
