//! A server of bare frames, for behaviour that regular servers never show.

use std::collections::{HashMap, HashSet, VecDeque};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;
/// `:status: 200` in the static table of HPACK.
const STATUS_200: u8 = 0x88;
/// A literal that enters no table, with the name `:status`.
const STATUS_LITERAL: u8 = 0x08;
pub(crate) const HEADER_TABLE_SIZE: u16 = 1;
const MAX_CONCURRENT_STREAMS: u16 = 3;
pub(crate) const INITIAL_WINDOW_SIZE: u16 = 4;
pub(crate) const MAX_FRAME_SIZE: u16 = 5;
pub(crate) const REFUSED_STREAM: u32 = 7;
pub(crate) const CANCEL: u32 = 8;
pub(crate) const INTERNAL_ERROR: u32 = 2;

/// An action of the client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Request { stream: u32, body: String },
    Reset { stream: u32, code: u32 },
    GoodBye,
}

pub(crate) async fn listen() -> (TcpListener, u16) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    (listener, port)
}

/// Reserves a port without a listener, so that no other test's server appears there.
pub(crate) fn deserted_port() -> (TcpSocket, u16) {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind(([127, 0, 0, 1], 0).into()).expect("a free port");
    let port = socket.local_addr().expect("bound").port();
    (socket, port)
}

/// One accepted connection; it panics when the client opens more streams than allowed.
pub(crate) struct Peer {
    tcp: TcpStream,
    bodies: HashMap<u32, Vec<u8>>,
    open: HashSet<u32>,
    /// Stream limits in the order of their announcement: the acknowledged one, then the unacknowledged ones.
    limits: VecDeque<u32>,
    pinged: bool,
    /// Every received header block.
    pub(crate) blocks: Vec<Vec<u8>>,
    /// Length of every received DATA frame.
    pub(crate) data: Vec<usize>,
}

impl Peer {
    /// Accepts a connection, reads the preface and allows `max_streams`.
    pub(crate) async fn accept(listener: &TcpListener, max_streams: u32) -> Self {
        let mut peer = Self::accept_mute(listener).await;
        peer.allow(max_streams).await;
        peer
    }

    /// Accepts a connection without sending anything.
    pub(crate) async fn accept_mute(listener: &TcpListener) -> Self {
        let (mut tcp, _) = listener.accept().await.expect("a connection");
        let mut preface = [0; 24];
        tcp.read_exact(&mut preface).await.expect("the preface");
        assert_eq!(&preface, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        let (bodies, open, blocks, data) = (HashMap::new(), HashSet::new(), Vec::new(), Vec::new());
        Self { tcp, bodies, open, limits: [0].into(), pinged: false, blocks, data }
    }

    /// Sends SETTINGS_MAX_CONCURRENT_STREAMS.
    pub(crate) async fn allow(&mut self, max_streams: u32) {
        self.tell(&[(MAX_CONCURRENT_STREAMS, max_streams)]).await;
    }

    /// Sends SETTINGS.
    pub(crate) async fn tell(&mut self, settings: &[(u16, u32)]) {
        let entry = |(id, value): &(u16, u32)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat();
        let payload: Vec<u8> = settings.iter().flat_map(entry).collect();
        let limit =
            settings.iter().rev().find(|(id, _)| *id == MAX_CONCURRENT_STREAMS).map(|(_, most)| *most);
        self.limits.extend(limit.or(self.limits.back().copied()));
        self.write(SETTINGS, 0, 0, &payload).await;
    }

    /// Widens the window of a stream, or the connection's.
    pub(crate) async fn widen(&mut self, stream: u32, bytes: u32) {
        self.write(WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes()).await;
    }

    pub(crate) async fn answer(&mut self, stream: u32) {
        self.open.remove(&stream);
        self.write(HEADERS, END_STREAM | END_HEADERS, stream, &[STATUS_200]).await;
    }

    /// Answers with a status of three digits.
    pub(crate) async fn answer_with(&mut self, stream: u32, status: &str) {
        self.open.remove(&stream);
        let mut block = vec![STATUS_LITERAL, status.len() as u8];
        block.extend(status.as_bytes());
        self.write(HEADERS, END_STREAM | END_HEADERS, stream, &block).await;
    }

    pub(crate) async fn reset(&mut self, stream: u32, code: u32) {
        self.open.remove(&stream);
        self.write(RST_STREAM, 0, stream, &code.to_be_bytes()).await;
    }

    pub(crate) async fn go_away(&mut self, last_stream: u32) {
        let mut payload = last_stream.to_be_bytes().to_vec();
        payload.extend(0_u32.to_be_bytes());
        self.write(GOAWAY, 0, 0, &payload).await;
    }

    /// Waits for the next request, reset or end; answers PING and SETTINGS in between.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.frame().await? {
                return Some(event);
            }
        }
    }

    /// Reads requests until the client has acknowledged every stream limit, and then everything it wrote before its reply to a PING;
    /// returns their streams.
    pub(crate) async fn requests_until_acknowledged(&mut self) -> Vec<u32> {
        let mut seen = Vec::new();
        while self.limits.len() > 1 {
            seen.extend(self.stream().await);
        }
        self.pinged = true;
        self.write(PING, 0, 0, &[0; 8]).await;
        while self.pinged {
            seen.extend(self.stream().await);
        }
        seen
    }

    async fn stream(&mut self) -> Option<u32> {
        match self.frame().await.expect("still open") {
            Some(Event::Request { stream, .. }) => Some(stream),
            _ => None,
        }
    }

    /// Reads one frame; `None` at the end of the connection.
    async fn frame(&mut self) -> Option<Option<Event>> {
        let mut head = [0; 9];
        self.tcp.read_exact(&mut head).await.ok()?;
        let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        self.tcp.read_exact(&mut payload).await.ok()?;
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        Some(self.understand(head[3], head[4], stream, payload).await)
    }

    /// Waits for `count` requests and returns their streams and bodies.
    pub(crate) async fn requests(&mut self, count: usize) -> Vec<(u32, String)> {
        let mut seen = Vec::new();
        while seen.len() < count {
            match self.next().await {
                Some(Event::Request { stream, body }) => seen.push((stream, body)),
                other => panic!("wanted request {}, got {other:?}", seen.len()),
            }
        }
        seen
    }

    /// Answers all requests until the client leaves; returns their bodies.
    pub(crate) async fn serve(&mut self) -> Vec<String> {
        let mut seen = Vec::new();
        while let Some(event) = self.next().await {
            if let Event::Request { stream, body } = event {
                self.answer(stream).await;
                seen.push(body);
            }
        }
        seen
    }

    async fn understand(&mut self, kind: u8, flags: u8, stream: u32, payload: Vec<u8>) -> Option<Event> {
        match kind {
            SETTINGS if flags & ACK != 0 => {
                // Never the last one: the latest announced limit stays in force.
                self.limits.pop_front();
            }
            HEADERS => {
                self.opened(stream);
                self.blocks.push(payload);
            }
            SETTINGS if flags & ACK == 0 => self.write(SETTINGS, ACK, 0, &[]).await,
            PING if flags & ACK != 0 => self.pinged = false,
            PING => self.write(PING, ACK, 0, &payload).await,
            GOAWAY => return Some(Event::GoodBye),
            RST_STREAM => {
                self.open.remove(&stream);
                let code = u32::from_be_bytes(payload.try_into().expect("four bytes"));
                return Some(Event::Reset { stream, code });
            }
            DATA => {
                self.data.push(payload.len());
                self.bodies.entry(stream).or_default().extend(payload);
            }
            _ => {}
        }
        let complete = matches!(kind, DATA | HEADERS) && flags & END_STREAM != 0;
        complete.then(|| {
            let body = self.bodies.remove(&stream).unwrap_or_default();
            Event::Request { stream, body: String::from_utf8(body).expect("text") }
        })
    }

    fn opened(&mut self, stream: u32) {
        self.open.insert(stream);
        let most = self.limits.iter().max().copied().unwrap_or(0);
        assert!(self.open.len() <= most as usize, "{} streams of {most}", self.open.len());
    }

    async fn write(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
        frame.extend([kind, flags]);
        frame.extend(stream.to_be_bytes());
        frame.extend(payload);
        // The client may have left; its own replies show that.
        let _ = self.tcp.write_all(&frame).await;
    }
}
