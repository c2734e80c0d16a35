//! The `h2` crate's server in all its modes: settings, windows, frames, trailers, resets, rejections, shutdowns.

mod server;

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use http::{HeaderName, HeaderValue};
use proptest::collection::vec;
use proptest::prelude::*;
use stentor_http2::{Fault, Keep, Limits, Reply, Request, RequestBatch, Response};

use crate::frames::listen;
use crate::support::{batch_of, client, quick, requests, within};
use server::{Act, Answer, Greeting, Script};

/// Most windows per body, so that a body passes quickly even through small windows.
const BODY_MAX_WINDOWS: usize = 100;

/// The parameters of one case.
#[derive(Debug, Clone)]
struct Case {
    greetings: Vec<Greeting>,
    acts: Vec<Act>,
    /// Bytes of each request's body.
    bodies: Vec<usize>,
    constant_bytes: usize,
    keep: Keep,
    limits: Limits,
}

fn any_greeting() -> impl Strategy<Value = Greeting> {
    let window = prop_oneof![Just(64), Just(1_000), Just(65_535), Just(1 << 20)];
    let frame = prop_oneof![Just(16_384), Just(20_000), Just((1 << 24) - 1)];
    let table = prop_oneof![Just(0), Just(100), Just(4_096), Just(65_536)];
    let streams = prop_oneof![Just(1), 2..20_u32, Just(1_000)];
    let connection_window = prop_oneof![Just(65_535), Just(1 << 20)];
    (window, any::<bool>(), connection_window, frame, table, streams).prop_map(
        |(window_bytes, opens_late, connection_window_bytes, frame_bytes, table_bytes, streams)| Greeting {
            window_bytes,
            opens_late,
            connection_window_bytes,
            frame_bytes,
            table_bytes,
            streams,
        },
    )
}

fn any_answer() -> impl Strategy<Value = Answer> {
    let status = prop_oneof![Just(200), Just(404), Just(503)];
    let piece = prop_oneof![0..3_usize, 0..2_000_usize, 16_000..40_000_usize];
    let header = prop_oneof![4 => 0..40_usize, 1 => Just(30_000)];
    (status, header, vec(piece, 0..4), any::<bool>(), any::<bool>(), 0..4_usize).prop_map(
        |(status, header_bytes, pieces, trailers, informs, pauses)| Answer {
            status,
            header_bytes,
            pieces,
            trailers,
            informs,
            pauses,
        },
    )
}

fn any_act() -> impl Strategy<Value = Act> {
    prop_oneof![
        12 => Just(Act::Answer),
        2 => Just(Act::Refuse),
        1 => Just(Act::Break),
        1 => Just(Act::BreakLate),
        2 => prop_oneof![Just(5_000), Just(100_000), Just(1 << 24)].prop_map(Act::Widen),
        1 => Just(Act::Retire),
        1 => Just(Act::Leave),
    ]
}

fn any_limits() -> impl Strategy<Value = Limits> {
    let streams = prop_oneof![Just(1), 2..10_usize, Just(1_500)];
    let requests = prop_oneof![1 => Just(3), 3 => Just(1 << 30)];
    let drain = prop_oneof![Just(20_000), Just(1 << 20)];
    (1..4_usize, streams, requests, drain, prop_oneof![Just(100), Just(8 * 1_024)]).prop_map(
        |(max_connections, max_streams_per_connection, max_requests_per_connection, drain, body)| Limits {
            max_connections,
            max_streams_per_connection,
            max_requests_per_connection,
            max_resends: server::RESENDS_MAX_COUNT,
            max_reply_drain_bytes: drain,
            max_reply_body_bytes: body,
            max_reply_header_bytes: 64 * 1_024,
            ..quick()
        },
    )
}

fn any_case() -> impl Strategy<Value = (Case, Vec<Answer>)> {
    let body = prop_oneof![0..10_usize, 50..2_000_usize, 16_000..40_000_usize];
    let constant = prop_oneof![0..50_usize, Just(3_000), Just(20_000)];
    let keep = prop_oneof![Just(Keep::All), Just(Keep::Refusals)];
    let bodies = vec(body, 1..50);
    let drawn = (
        vec(any_greeting(), 1..4),
        vec(any_act(), 1..30),
        bodies,
        constant,
        keep,
        any_limits(),
        vec(any_answer(), 1..8),
    );
    drawn.prop_map(|(greetings, acts, bodies, constant_bytes, keep, limits, answers)| {
        let least = greetings.iter().map(|greeting| greeting.window_bytes).min().unwrap_or_default();
        let most = least as usize * BODY_MAX_WINDOWS;
        let bodies = bodies.into_iter().map(|bytes: usize| bytes.min(most)).collect();
        (Case { greetings, acts, bodies, constant_bytes, keep, limits }, answers)
    })
}

/// A text of this length that depends on the number.
fn text(number: usize, length: usize) -> String {
    let mut text = String::with_capacity(length + 8);
    while text.len() < length {
        write!(text, "{number}.").expect("room");
    }
    text.truncate(length);
    text
}

fn batch(case: &Case) -> RequestBatch {
    let mut requests: Vec<Request> = requests(case.bodies.len());
    for (index, request) in requests.iter_mut().enumerate() {
        request.body = text(index, case.bodies[index]).into();
        let own = HeaderValue::from(index);
        request.headers = vec![(HeaderName::from_static("own"), own)];
    }
    let constant = HeaderValue::try_from(text(0, case.constant_bytes)).expect("a value");
    RequestBatch {
        constant: vec![(HeaderName::from_static("constant"), constant)],
        keep: case.keep,
        ..batch_of(requests)
    }
}

/// Returns true if a response may be cut off, is cut off, and is correct up to that point.
fn breaks_off(response: &Response, index: usize, script: &Script) -> bool {
    let may = script.left || script.last.get(&index) == Some(&Act::BreakLate);
    let said = text(index, script.answer(index).pieces.iter().sum());
    may && response.truncated && said.as_bytes().starts_with(response.body())
}

/// Checks the kept part of a response against the response of the server.
fn is_told(response: &Response, index: usize, answer: &Answer, case: &Case) -> Result<(), TestCaseError> {
    prop_assert_eq!(response.status, answer.status);
    if matches!(case.keep, Keep::Refusals) && answer.status == 200 {
        prop_assert!(response.body().is_empty());
        return Ok(());
    }
    let said = text(index, answer.pieces.iter().sum());
    let body_bytes = said.len().min(case.limits.max_reply_body_bytes);
    prop_assert!(response.body() == &said.as_bytes()[..body_bytes], "{:?} of {} bytes", response, said.len());
    prop_assert_eq!(response.truncated, body_bytes < said.len());
    let header = text(index, answer.header_bytes);
    prop_assert_eq!(response.header("own").map(HeaderValue::as_bytes), Some(header.as_bytes()));
    Ok(())
}

/// Checks the reply to one request against the server's action on it.
fn is_right(index: usize, reply: &Reply, script: &Script, case: &Case) -> Result<(), TestCaseError> {
    let processed = script.processed.get(&index).copied().unwrap_or_default();
    prop_assert!(processed <= 1, "processed {} times", processed);
    match (script.last.get(&index), reply) {
        (Some(Act::Break), Reply::Unanswered(Fault::Reset(_))) => {}
        // The part of the response sent before the reset may have been lost.
        (Some(Act::BreakLate), Reply::Unanswered(Fault::Reset(_))) => {}
        (_, Reply::Answered(response)) if breaks_off(response, index, script) => {}
        (Some(Act::Break | Act::BreakLate), other) if !script.left => {
            prop_assert!(false, "{:?} to what was broken off", other);
        }
        (_, Reply::Answered(response)) => {
            prop_assert_eq!(processed, 1);
            is_told(response, index, script.answer(index), case)?;
        }
        (_, Reply::Unanswered(_)) if script.left => {}
        (last, other) => prop_assert!(false, "{:?} after {:?}", other, last),
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, max_shrink_iters: 50, ..ProptestConfig::default() })]

    #[test]
    fn the_server_of_the_h2_crate_in_any_mood_processes_each_request_once((case, answers) in any_case()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let script = Arc::new(Mutex::new(Script::new(case.acts.clone(), answers, &case.bodies, case.constant_bytes)));
        let shared = Arc::clone(&script);
        let replies = runtime.block_on(async {
            let (listener, port) = listen().await;
            tokio::spawn(server::serve(listener, case.greetings.clone(), shared));
            let client = client(port, case.limits.clone());
            within(20, client.send(batch(&case))).await
        });
        let script = script.lock().expect("sound");
        prop_assert_eq!(&script.wrong, &Vec::<String>::new());
        prop_assert_eq!(replies.len(), case.bodies.len());
        for (index, reply) in replies.iter().enumerate() {
            is_right(index, reply, &script, &case)?;
        }
    }
}
