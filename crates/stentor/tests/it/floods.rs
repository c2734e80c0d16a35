//! Floods of the API with headers, frames or requests: they are ended within limits, memory does not grow, and other callers are served.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::faces::Shop;
use crate::http2_frames::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEAD_BYTES, HEADERS, HELLO, RST_STREAM, SETTINGS,
    frame, header, request,
};

/// All timeouts for slow peers are set to two seconds.
const SETTINGS_OF_SERVER: &str = "[api]\nheader_timeout_seconds = 2\nbody_timeout_seconds = 2\n\
                                  import_idle_timeout_seconds = 2\nconnection_idle_timeout_seconds = 2\n";
/// A timeout of two seconds, the closing of a connection, and the delays of a busy machine.
const TIMED_OUT_MAX: Duration = Duration::from_secs(30);
const PATIENCE: Duration = Duration::from_secs(120);
const GROWTH_MAX_BYTES: u64 = 64 * 1_024 * 1_024;
/// The HTTP/2 error code for a peer that causes too much load (RFC 9113, section 7).
const ENHANCE_YOUR_CALM: u32 = 11;
/// The reply with status 200, as encoded by the static table of RFC 7541.
const OK: u8 = 0x88;

/// A server that is flooded while others call it.
struct FloodedServer {
    shop: Shop,
    address: SocketAddr,
}

/// The end of a flood.
struct EndedFlood {
    took: Duration,
    /// Number of bytes written.
    written: usize,
    /// All bytes sent by the server.
    said: Vec<u8>,
}

impl FloodedServer {
    fn open() -> Self {
        let shop = Shop::open_with(SETTINGS_OF_SERVER);
        let address = shop.server.process.url().trim_start_matches("http://").parse().unwrap();
        Self { shop, address }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Queries the server's health on a separate connection.
    fn is_served(&self) -> bool {
        let mut stream = self.connect();
        stream.write_all(b"GET /healthz HTTP/1.0\r\nhost: server\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.starts_with("HTTP/1.0 200") || answer.starts_with("HTTP/1.1 200")
    }

    /// Runs a flood while others call the server; returns its result. Each of the calls gets a response, and memory does not grow.
    fn beside_others<T>(&self, flood: impl FnOnce() -> T) -> T {
        assert!(self.is_served(), "before");
        let before = self.shop.server.process.peak_bytes();
        let is_over = AtomicBool::new(false);
        let (ended, requests) = std::thread::scope(|scope| {
            let others = scope.spawn(|| {
                let mut requests = 0;
                // At least once, however soon the flood is over.
                loop {
                    let (began, is_last) = (Instant::now(), is_over.load(Ordering::Relaxed));
                    assert!(self.is_served(), "meanwhile");
                    assert!(began.elapsed() < TIMED_OUT_MAX, "others wait: {:?}", began.elapsed());
                    requests += 1;
                    if is_last {
                        break;
                    }
                }
                requests
            });
            let finished = Over(&is_over);
            let ended = flood();
            drop(finished);
            (ended, others.join().unwrap())
        });
        assert!(requests > 0 && self.is_served(), "afterwards");
        // The kernel counts it per processor, and the sum may decrease.
        let grown = self.shop.server.process.peak_bytes().saturating_sub(before);
        assert!(grown < GROWTH_MAX_BYTES, "{grown} bytes");
        ended
    }

    /// Writes the output of `next` until the server has ended the connection; reads the server's output concurrently.
    fn until_ended(&self, first: &[u8], mut next: impl FnMut(u32) -> Vec<u8>) -> EndedFlood {
        let mut stream = self.connect();
        let reader = stream.try_clone().unwrap();
        let reading = std::thread::spawn(move || read_to_end(reader));
        let (began, mut written) = (Instant::now(), 0);
        let mut bytes = first.to_vec();
        for number in 0.. {
            assert!(began.elapsed() < PATIENCE, "it goes on after {written} bytes");
            match stream.write_all(&bytes) {
                Ok(()) => written += bytes.len(),
                // The server has closed the connection, which the system reports at a further write.
                Err(error) if is_closed(error.kind()) => break,
                Err(error) => panic!("after {written} bytes: {error}"),
            }
            bytes = next(number);
        }
        EndedFlood { took: began.elapsed(), written, said: reading.join().unwrap() }
    }
}

/// Ends the calls beside a flood, even after a panic, because they would continue forever.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl EndedFlood {
    /// Returns the reason in the last GOAWAY, if the server could send it before the connection was closed.
    fn reason(&self) -> Option<u32> {
        let mut goaways = frames(&self.said).into_iter().filter(|(kind, _, _)| *kind == GOAWAY);
        goaways.next_back().map(|(_, _, payload)| u32::from_be_bytes(payload[4..8].try_into().unwrap()))
    }
}

fn is_closed(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::BrokenPipe | ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted)
}

fn read_to_end(mut stream: TcpStream) -> Vec<u8> {
    let mut said = Vec::new();
    match stream.read_to_end(&mut said) {
        Err(error) if !is_closed(error.kind()) => panic!("{error}"),
        _ => said,
    }
}

/// Parses bytes into kind, stream and payload; an incomplete last frame is left out.
fn frames(mut bytes: &[u8]) -> Vec<(u8, u32, Vec<u8>)> {
    let mut found = Vec::new();
    while let Some(head) = bytes.get(..HEAD_BYTES) {
        let end = HEAD_BYTES + u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let Some(payload) = bytes.get(HEAD_BYTES..end) else { break };
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        found.push((head[3], stream, payload.to_vec()));
        bytes = &bytes[end..];
    }
    found
}

/// Returns a complete header frame on a stream.
fn asked(flags: u8, stream: u32, head: &[u8]) -> Vec<u8> {
    frame(HEADERS, flags | END_HEADERS, stream, head)
}

fn repeated(times: u32, one: impl Fn(u32) -> Vec<u8>) -> Vec<u8> {
    (0..times).flat_map(one).collect()
}

#[test]
fn a_head_without_an_end_is_refused_for_its_size() {
    let server = FloodedServer::open();
    let lines = format!("x-more: {}\r\n", "a".repeat(500)).repeat(8);
    let flood = || server.until_ended(b"GET /healthz HTTP/1.1\r\n", |_| lines.clone().into_bytes());
    let ended = server.beside_others(flood);
    let said = String::from_utf8_lossy(&ended.said).into_owned();
    assert!(said.is_empty() || said.starts_with("HTTP/1.1 431"), "{said}");
    assert!(ended.took < TIMED_OUT_MAX, "{:?} for {} bytes", ended.took, ended.written);
    // A single long line has the same effect.
    let flood = || server.until_ended(b"GET /healthz HTTP/1.1\r\nx-more: ", |_| vec![b'a'; 4_096]);
    assert!(server.beside_others(flood).took < TIMED_OUT_MAX);
    let flood = || server.until_ended(b"GET /", |_| vec![b'a'; 4_096]);
    assert!(server.beside_others(flood).took < TIMED_OUT_MAX, "nor does an address end");
}

#[test]
fn a_head_that_goes_on_in_frames_without_an_end_ends_the_connection() {
    let server = FloodedServer::open();
    let head = request("GET", "/healthz", &[]);
    let begin = [HELLO, &frame(HEADERS, END_STREAM, 1, &head)].concat();
    let more = header(0, "x-more", &"a".repeat(1_000));
    for (what, piece) in [("headers", more.as_slice()), ("a byte", &more[..1]), ("nothing", &[])] {
        let flood = || server.until_ended(&begin, |_| frame(CONTINUATION, 0, 1, piece).repeat(64));
        let ended = server.beside_others(flood);
        assert!(ended.took < TIMED_OUT_MAX, "{what}: {:?} for {} bytes", ended.took, ended.written);
        assert_ne!(ended.reason(), Some(0), "{what}");
    }
}

#[test]
fn requests_that_are_taken_back_at_once_end_the_connection() {
    let server = FloodedServer::open();
    let head = request("GET", "/healthz", &[]);
    let taken_back = |number: u32| {
        let stream = 2 * number + 1;
        [asked(END_STREAM, stream, &head), frame(RST_STREAM, 0, stream, &[0, 0, 0, 8])].concat()
    };
    let flood = || server.until_ended(HELLO, |burst| repeated(200, |one| taken_back(burst * 200 + one)));
    let ended = server.beside_others(flood);
    assert!(ended.took < TIMED_OUT_MAX, "{:?} for {} bytes", ended.took, ended.written);
    assert!(matches!(ended.reason(), None | Some(ENHANCE_YOUR_CALM)), "{:?}", ended.reason());
}

#[test]
fn settings_without_an_end_are_no_request_and_end_as_one_that_asks_for_nothing() {
    let server = FloodedServer::open();
    let changed = frame(SETTINGS, 0, 0, &[0, 4, 0, 1, 0, 0]).repeat(64);
    let ended = server.beside_others(|| server.until_ended(HELLO, |_| changed.clone()));
    assert!(ended.took < TIMED_OUT_MAX, "{:?} for {} bytes", ended.took, ended.written);
    // Acknowledgements are not buffered for a peer that does not read them.
    let unread = || {
        let (mut stream, began) = (server.connect(), Instant::now());
        stream.set_write_timeout(Some(TIMED_OUT_MAX)).unwrap();
        let mut written = stream.write_all(HELLO);
        while !written.as_ref().is_err_and(|error| is_closed(error.kind())) {
            assert!(written.is_ok() && began.elapsed() < TIMED_OUT_MAX, "{written:?}");
            written = stream.write_all(&changed);
        }
    };
    server.beside_others(unread);
}

#[test]
fn frames_without_a_byte_are_no_body_and_end_as_one_that_does_not_come() {
    let server = FloodedServer::open();
    let key = format!("Bearer {}", server.shop.key);
    for (path, kind) in [("/v1/devices", "application/json"), ("/v1/devices/import", "application/x-ndjson")]
    {
        let head = request("POST", path, &[("authorization", key.as_str()), ("content-type", kind)]);
        let begin = [HELLO, &asked(0, 1, &head)].concat();
        let empty = frame(DATA, 0, 1, &[]).repeat(64);
        let ended = server.beside_others(|| server.until_ended(&begin, |_| empty.clone()));
        assert!(ended.took < TIMED_OUT_MAX, "{path}: {:?} for {} bytes", ended.took, ended.written);
        let frames_received = frames(&ended.said);
        let is_served =
            frames_received.iter().any(|(kind, _, payload)| *kind == HEADERS && payload.first() == Some(&OK));
        assert!(!is_served, "{path}: {frames_received:?}");
    }
}

/// Sends headers and reads until the connection has ended, or the reply on the last stream has arrived.
fn told(server: &FloodedServer, sent: &[u8], last: u32) -> Vec<(u8, u32, Vec<u8>)> {
    let (mut stream, mut said) = (server.connect(), Vec::new());
    stream.write_all(sent).unwrap();
    loop {
        let frames_received = frames(&said);
        if frames_received.iter().any(|(kind, stream, _)| (*kind, *stream) == (HEADERS, last)) {
            return frames_received;
        }
        let mut bytes = [0; 4_096];
        match stream.read(&mut bytes) {
            Ok(0) => return frames_received,
            Ok(count) => said.extend_from_slice(&bytes[..count]),
            Err(error) if is_closed(error.kind()) => return frames_received,
            Err(error) => panic!("{error}: {frames_received:?}"),
        }
    }
}

#[test]
fn a_request_with_too_many_headers_is_refused_and_the_connection_goes_on() {
    let server = FloodedServer::open();
    let honest = request("GET", "/healthz", &[]);
    let many = [&honest[..], &header(0, "x-more", &"a".repeat(1_000)).repeat(16)].concat();
    let (first, second) = many.split_at(16_000);
    let large = [frame(HEADERS, END_STREAM, 1, first), frame(CONTINUATION, END_HEADERS, 1, second)].concat();
    let sent = [HELLO, &large, &asked(END_STREAM, 3, &honest)].concat();
    let frames_received = server.beside_others(|| told(&server, &sent, 3));
    let status = |of: u32| {
        let mut heads =
            frames_received.iter().filter(move |(kind, stream, _)| (*kind, *stream) == (HEADERS, of));
        heads.next().and_then(|(_, _, payload)| payload.first().copied())
    };
    assert_eq!(status(3), Some(OK), "{frames_received:?}");
    assert!(status(1).is_some_and(|first| first != OK), "{frames_received:?}");
}

#[test]
fn headers_that_unfold_to_megabytes_end_the_connection() {
    let server = FloodedServer::open();
    // One header is stored in the table, and referenced fifteen thousand times by one byte: 60 MB of headers in 20 KB.
    let remembered = header(0x40, "x-more", &"a".repeat(4_000));
    let head = [&request("GET", "/healthz", &[])[..], &remembered].concat();
    let names = vec![0xbe; 15_000];
    let bomb = [frame(HEADERS, END_STREAM, 1, &head), frame(CONTINUATION, END_HEADERS, 1, &names)].concat();
    let frames_received = server.beside_others(|| told(&server, &[HELLO, &bomb].concat(), 1));
    let goaway = frames_received.iter().find(|(kind, _, _)| *kind == GOAWAY);
    let reason = goaway.map(|(_, _, payload)| u32::from_be_bytes(payload[4..8].try_into().unwrap()));
    assert_eq!(reason, Some(ENHANCE_YOUR_CALM), "{frames_received:?}");
}
