//! The server of these cases, and its records.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use h2::server::{Connection, SendResponse};
use h2::{Reason, RecvStream};
use http::{HeaderMap, HeaderName, HeaderValue};
use tokio::net::{TcpListener, TcpStream};

use super::text;

/// Most rejections of each request.
const REFUSALS_MAX_COUNT: usize = 2;
/// Most connections that end early.
const ENDS_MAX_COUNT: usize = 3;
/// A request with this many resends has gone through everything that a server may do to it.
pub(super) const RESENDS_MAX_COUNT: u8 = (REFUSALS_MAX_COUNT + ENDS_MAX_COUNT) as u8;

/// The settings at the start of a connection.
#[derive(Debug, Clone)]
pub(super) struct Greeting {
    pub(super) window_bytes: u32,
    /// True if streams have no window until the first request has come.
    pub(super) opens_late: bool,
    pub(super) connection_window_bytes: u32,
    pub(super) frame_bytes: u32,
    pub(super) table_bytes: u32,
    pub(super) streams: u32,
}

/// The server's action on a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    Answer,
    /// Rejects it unread.
    Refuse,
    /// Reads it and resets its stream.
    Break,
    /// Resets its stream in the middle of the response.
    BreakLate,
    /// Widens the window of all streams, then answers.
    Widen(u32),
    /// Takes no more requests on this connection, then answers.
    Retire,
    /// Ends the connection at once.
    Leave,
}

#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) header_bytes: usize,
    pub(super) pieces: Vec<usize>,
    pub(super) trailers: bool,
    pub(super) informs: bool,
    /// Number of times that it yields the thread before the response.
    pub(super) pauses: usize,
}

/// State shared by the connections: the next acts, and the past ones.
pub(super) struct Script {
    acts: Vec<Act>,
    next: usize,
    answers: Vec<Answer>,
    bodies: Vec<usize>,
    constant_bytes: usize,
    refused: HashMap<usize, usize>,
    ends: usize,
    /// Number of times that each request was read to its end and acted on.
    pub(super) processed: HashMap<usize, usize>,
    /// The last action on each request.
    pub(super) last: HashMap<usize, Act>,
    /// True if a connection was ended at once.
    pub(super) left: bool,
    /// Requests that arrived other than they were sent.
    pub(super) wrong: Vec<String>,
}

impl Script {
    pub(super) fn new(acts: Vec<Act>, answers: Vec<Answer>, bodies: &[usize], constant_bytes: usize) -> Self {
        Self {
            acts,
            next: 0,
            answers,
            bodies: bodies.to_vec(),
            constant_bytes,
            refused: HashMap::new(),
            ends: 0,
            processed: HashMap::new(),
            last: HashMap::new(),
            left: false,
            wrong: Vec::new(),
        }
    }

    /// Returns the response to a request, the same at each repetition.
    pub(super) fn answer(&self, index: usize) -> &Answer {
        &self.answers[index % self.answers.len()]
    }

    /// Draws the action on a request; a plain response once the limits are reached.
    fn act(&mut self, index: usize) -> Act {
        self.next += 1;
        let mut act = self.acts[(self.next - 1) % self.acts.len()];
        let refused = self.refused.entry(index).or_default();
        match act {
            Act::Refuse if *refused < REFUSALS_MAX_COUNT => *refused += 1,
            Act::Retire | Act::Leave if self.ends < ENDS_MAX_COUNT => self.ends += 1,
            Act::Refuse | Act::Retire | Act::Leave => act = Act::Answer,
            _ => {}
        }
        self.left |= act == Act::Leave;
        self.last.insert(index, act);
        act
    }

    /// Records a complete request, and compares it with the request sent.
    fn process(&mut self, index: usize, head: &http::Request<()>, body: &[u8]) {
        *self.processed.entry(index).or_default() += 1;
        let constant = text(0, self.constant_bytes);
        let constant = head.headers().get("constant").map(HeaderValue::as_bytes) == Some(constant.as_bytes());
        let own = head.headers().get("own") == Some(&HeaderValue::from(index));
        let same = self.bodies.get(index).is_some_and(|bytes| text(index, *bytes).as_bytes() == body);
        if !(constant && own && same && head.method() == http::Method::POST) {
            self.wrong.push(format!("{head:?} with {} bytes", body.len()));
        }
    }
}

type Shared = Arc<Mutex<Script>>;

/// Serves every connection, each with the next greeting.
pub(super) async fn serve(listener: TcpListener, greetings: Vec<Greeting>, script: Shared) {
    for greeting in greetings.into_iter().cycle() {
        let Ok((tcp, _)) = listener.accept().await else { return };
        // Otherwise each frame of a slow exchange would wait for the acknowledgement of the previous one.
        tcp.set_nodelay(true).expect("connected");
        tokio::spawn(serve_connection(tcp, greeting, Arc::clone(&script)));
    }
}

async fn greet(tcp: TcpStream, greeting: &Greeting) -> Result<Connection<TcpStream, Bytes>, h2::Error> {
    let mut builder = h2::server::Builder::new();
    builder
        .initial_window_size(if greeting.opens_late { 0 } else { greeting.window_bytes })
        .initial_connection_window_size(greeting.connection_window_bytes)
        .max_frame_size(greeting.frame_bytes)
        .header_table_size(greeting.table_bytes)
        .max_header_list_size(64 * 1_024)
        .max_concurrent_streams(greeting.streams)
        .data_frame_budget(1 << 30);
    builder.handshake(tcp).await
}

async fn serve_connection(tcp: TcpStream, greeting: Greeting, script: Shared) {
    let Ok(mut connection) = greet(tcp, &greeting).await else { return };
    let mut window = if greeting.opens_late { 0 } else { greeting.window_bytes };
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        if window == 0 {
            window = greeting.window_bytes;
            connection.set_initial_window_size(window).expect("the first settings are acknowledged");
        }
        let Ok(index) = request.uri().path()[1..].parse() else { continue };
        let act = script.lock().expect("sound").act(index);
        match act {
            Act::Refuse => {
                respond.send_reset(Reason::REFUSED_STREAM);
                continue;
            }
            Act::Leave => connection.abrupt_shutdown(Reason::NO_ERROR),
            Act::Retire => connection.graceful_shutdown(),
            // Never narrower: the h2 crate does not return the window of bytes read before it applies its own new limit.
            Act::Widen(bytes) if bytes > window => {
                // Not while the previous settings are unacknowledged.
                window = connection.set_initial_window_size(bytes).map_or(window, |()| bytes);
            }
            Act::Answer | Act::Break | Act::BreakLate | Act::Widen(_) => {}
        }
        tokio::spawn(respond_to(index, act, request, respond, Arc::clone(&script)));
    }
}

async fn respond_to(
    index: usize,
    act: Act,
    request: http::Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    script: Shared,
) {
    let (head, body) = request.into_parts();
    let Some(body) = read(body).await else { return };
    let answer = {
        let mut script = script.lock().expect("sound");
        script.process(index, &http::Request::from_parts(head, ()), &body);
        script.answer(index).clone()
    };
    for _ in 0..answer.pauses {
        tokio::task::yield_now().await;
    }
    if act == Act::Break {
        return respond.send_reset(Reason::INTERNAL_ERROR);
    }
    // The connection may have ended in between.
    let _ = say(index, &answer, act == Act::BreakLate, respond).await;
}

/// Reads a body to its end; `None` when it has none.
async fn read(mut body: RecvStream) -> Option<Vec<u8>> {
    let mut all = Vec::new();
    while let Some(data) = body.data().await {
        let data = data.ok()?;
        body.flow_control().release_capacity(data.len()).ok()?;
        all.extend(data);
    }
    body.is_end_stream().then_some(all)
}

async fn say(
    index: usize,
    answer: &Answer,
    breaks: bool,
    mut respond: SendResponse<Bytes>,
) -> Result<(), h2::Error> {
    if answer.informs {
        let head = http::Response::builder().status(103).header("early", "yes").body(()).expect("a head");
        respond.send_informational(head)?;
    }
    let own = HeaderValue::try_from(text(index, answer.header_bytes)).expect("a value");
    let head = http::Response::builder().status(answer.status).header("own", own).body(()).expect("a head");
    let bare = answer.pieces.is_empty() && !answer.trailers && !breaks;
    let mut stream = respond.send_response(head, bare)?;
    if bare {
        return Ok(());
    }
    let mut said = Bytes::from(text(index, answer.pieces.iter().sum()));
    for (at, piece) in answer.pieces.iter().enumerate() {
        let ends = at + 1 == answer.pieces.len() && !answer.trailers && !breaks;
        stream.send_data(said.split_to(*piece), ends)?;
        tokio::task::yield_now().await;
    }
    if breaks {
        stream.send_reset(Reason::INTERNAL_ERROR);
    } else if answer.trailers {
        let trailer = (HeaderName::from_static("last"), HeaderValue::from(index));
        stream.send_trailers(HeaderMap::from_iter([trailer]))?;
    }
    Ok(())
}
