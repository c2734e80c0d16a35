//! The sink under the `h2` crate's client in every mood that it has: settings, windows, frames, pieces, trailers, resets.

use crate::rig::hex;
use bytes::Bytes;
use futures_util::future::join_all;
use h2::Reason;
use h2::client::{Connection, ResponseFuture, SendRequest};
use http::{HeaderMap, HeaderValue, Request};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;
use std::collections::HashMap;
use std::time::Duration;
use stentor_emulators::{ObserverConfig, RunningSink, SinkConfig, SinkEmulator, TlsConfig};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

/// Different tokens; the same one comes more than once.
const TOKENS: u32 = 8;

/// The settings that a client sends first.
#[derive(Clone, Debug)]
struct Greeting {
    window_bytes: u32,
    /// True if streams have no window until the heads of all responses have arrived.
    opens_late: bool,
    connection_window_bytes: u32,
    frame_bytes: u32,
    table_bytes: u32,
    push: bool,
}

/// One request.
#[derive(Clone, Debug)]
struct Push {
    token: u32,
    is_fcm: bool,
    padding_bytes: usize,
    /// Bytes of the pieces in which its body goes, in turn.
    pieces: Vec<usize>,
    trailers: bool,
    /// True if the request is reset before its end.
    canceled: bool,
    header_bytes: usize,
}

fn any_greeting() -> impl Strategy<Value = Greeting> {
    let window = prop_oneof![1..50_u32, Just(65_535), Just((1 << 31) - 1)];
    let connection_window = prop_oneof![Just(65_535), Just(1 << 24)];
    let frame = prop_oneof![Just(16_384), Just(50_000), Just((1 << 24) - 1)];
    let table = prop_oneof![Just(0), 32..200_u32, Just(4_096), Just(65_536)];
    (window, any::<bool>(), connection_window, frame, table, any::<bool>()).prop_map(
        |(window_bytes, opens_late, connection_window_bytes, frame_bytes, table_bytes, push)| Greeting {
            window_bytes,
            opens_late,
            connection_window_bytes,
            frame_bytes,
            table_bytes,
            push,
        },
    )
}

fn any_push() -> impl Strategy<Value = Push> {
    let padding = prop_oneof![0..100_usize, 3_000..40_000_usize];
    let piece = prop_oneof![1..40_usize, 1_000..20_000_usize];
    let header = prop_oneof![3 => 0..60_usize, 1 => 4_000..12_000_usize];
    let canceled = prop::bool::weighted(0.1);
    (0..TOKENS, any::<bool>(), padding, vec(piece, 1..4), any::<bool>(), canceled, header).prop_map(
        |(token, is_fcm, padding_bytes, pieces, trailers, canceled, header_bytes)| Push {
            token,
            is_fcm,
            padding_bytes,
            // Pieces of few bytes for large bodies would be thousands of frames.
            pieces: pieces.into_iter().map(|bytes| bytes.max(padding_bytes / 50)).collect(),
            trailers,
            canceled,
            header_bytes,
        },
    )
}

impl Push {
    fn token(&self) -> String {
        hex(self.token)
    }

    fn head(&self, number: usize) -> Request<()> {
        let path = if self.is_fcm {
            "/v1/projects/p/messages:send".to_owned()
        } else {
            format!("/3/device/{}", self.token())
        };
        let request = Request::post(format!("http://localhost{path}")).header("apns-id", number.to_string());
        request.header("x-long", "v".repeat(self.header_bytes)).body(()).unwrap()
    }

    /// Builds the body, with the token after all of the padding.
    fn body(&self) -> Bytes {
        let (padding, token) = ("x".repeat(self.padding_bytes), self.token());
        format!(r#"{{"message":{{"data":{{"padding":"{padding}"}},"token":"{token}"}}}}"#).into()
    }

    /// Sends it piece by piece; returns its answer unless it is canceled.
    async fn send(&self, number: usize, client: SendRequest<Bytes>) -> Option<ResponseFuture> {
        let mut ready = client.ready().await.unwrap();
        let (response, mut stream) = ready.send_request(self.head(number), false).unwrap();
        let mut body = self.body();
        for piece in self.pieces.iter().cycle() {
            let bytes = body.split_to(body.len().min(*piece));
            if body.is_empty() && self.canceled {
                stream.send_reset(Reason::CANCEL);
                return None;
            }
            stream.send_data(bytes, body.is_empty() && !self.trailers).unwrap();
            if body.is_empty() {
                break;
            }
            tokio::task::yield_now().await;
        }
        if self.trailers {
            stream
                .send_trailers(HeaderMap::from_iter([(http::header::ETAG, HeaderValue::from(number))]))
                .unwrap();
        }
        Some(response)
    }
}

/// Drives a connection. Its streams get a window when `opened` resolves.
async fn drive(mut connection: Connection<TcpStream, Bytes>, opened: oneshot::Receiver<u32>) {
    tokio::select! {
        Ok(bytes) = opened => connection.set_initial_window_size(bytes).unwrap(),
        _ = &mut connection => return,
    }
    let _ = connection.await;
}

/// Sends everything over one connection; returns the heads' ids and the bodies of the answers, by the request's number.
async fn carry(
    greeting: &Greeting,
    pushes: &[Push],
    sink: &RunningSink,
) -> HashMap<usize, (String, Vec<u8>)> {
    let stream = TcpStream::connect(sink.addr()).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let mut builder = h2::client::Builder::new();
    builder
        .initial_window_size(if greeting.opens_late { 0 } else { greeting.window_bytes })
        .initial_connection_window_size(greeting.connection_window_bytes)
        .max_frame_size(greeting.frame_bytes)
        .header_table_size(greeting.table_bytes)
        .enable_push(greeting.push);
    let (client, connection) = builder.handshake(stream).await.unwrap();
    let (open, opened) = oneshot::channel();
    tokio::spawn(drive(connection, opened));
    let sent = pushes.iter().enumerate().map(|(number, push)| push.send(number, client.clone()));
    let mut answers = Vec::new();
    for (number, response) in join_all(sent).await.into_iter().enumerate() {
        let Some(response) = response else { continue };
        answers.push((number, response.await.unwrap()));
    }
    if greeting.opens_late {
        open.send(greeting.window_bytes).unwrap();
    }
    let mut seen = HashMap::new();
    for (number, answer) in answers {
        assert_eq!(answer.status(), 200);
        let id = answer.headers().get("apns-id").map(|id| id.to_str().unwrap().to_owned());
        seen.insert(number, (id.unwrap_or_default(), whole(answer).await));
    }
    seen
}

async fn whole(answer: http::Response<h2::RecvStream>) -> Vec<u8> {
    let mut stream = answer.into_body();
    let mut body = Vec::new();
    while let Some(chunk) = stream.data().await {
        let chunk = chunk.unwrap();
        stream.flow_control().release_capacity(chunk.len()).unwrap();
        body.extend_from_slice(&chunk);
    }
    body
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, max_shrink_iters: 50, ..ProptestConfig::default() })]

    #[test]
    fn the_client_of_the_h2_crate_in_any_mood_gets_each_answer_and_is_counted_once(
        greeting in any_greeting(),
        pushes in vec(any_push(), 1..40),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (seen, counted) = runtime.block_on(async {
            let observer = Some(ObserverConfig::default());
            let config = SinkConfig { tls: TlsConfig::Plaintext, observer, ..SinkConfig::default() };
            let sink = SinkEmulator::start(config).await.unwrap();
            let seen = tokio::time::timeout(Duration::from_secs(20), carry(&greeting, &pushes, &sink));
            let seen = seen.await.expect("ends in time");
            (seen, (0..TOKENS).map(|token| sink.counts(&hex(token)).accepted).collect::<Vec<_>>())
        });
        for (number, push) in pushes.iter().enumerate() {
            let answer = seen.get(&number);
            prop_assert_eq!(answer.is_none(), push.canceled);
            let Some((id, body)) = answer else { continue };
            if push.is_fcm {
                let body: Value = serde_json::from_slice(body).unwrap();
                prop_assert!(body["name"].as_str().unwrap().starts_with("projects/p/messages/"));
            } else {
                prop_assert_eq!((id, body.len()), (&number.to_string(), 0));
            }
        }
        let sent = |token: u32| pushes.iter().filter(|push| push.token == token && !push.canceled).count() as u32;
        prop_assert_eq!(counted, (0..TOKENS).map(sent).collect::<Vec<_>>());
    }
}
