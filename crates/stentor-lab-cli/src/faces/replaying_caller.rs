//! A connection over which one request is sent repeatedly. Replies are parsed only as far as needed to find their ends.

use super::replay::{Framing, Replay};
use anyhow::{Context, bail, ensure};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;
use stentor_lab::subject::clock::monotonic_ns;

/// Timeout of a reply.
const REPLY_LIMIT: Duration = Duration::from_secs(10);
/// Limit of a reply, with its framing.
const REPLY_MAX_BYTES: usize = 4 << 20;
const READ_BYTES: usize = 16 << 10;
const FRAME_HEAD_BYTES: usize = 9;

/// A caller with one call at a time.
pub(crate) struct ReplayingCaller {
    stream: TcpStream,
    framing: Framing,
    request: Vec<u8>,
    /// Bytes received and not used yet.
    received: Vec<u8>,
    body: Vec<u8>,
    /// Id of the last stream (HTTP/2).
    stream_id: u32,
    /// Time of the first bytes of the last reply, in nanoseconds of the laboratory's clock.
    first_byte_ns: Option<i64>,
}

impl ReplayingCaller {
    /// Connects and sends the hello.
    pub(crate) fn connect(replay: &Replay) -> anyhow::Result<Self> {
        let address = replay.address;
        let mut stream = TcpStream::connect(address).with_context(|| format!("no server at {address}"))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(REPLY_LIMIT))?;
        stream.write_all(&replay.hello)?;
        let (framing, request) = (replay.framing, replay.request.clone());
        // The first stream of a client is 1, and they are odd (RFC 9113, 5.1.1).
        let (received, body, stream_id) = (Vec::new(), Vec::new(), u32::MAX);
        let mut caller = Self { stream, framing, request, received, body, stream_id, first_byte_ns: None };
        if framing == Framing::Lengths {
            caller.read_lengths()?;
        }
        Ok(caller)
    }

    /// Makes one call and returns the reply's body, or the messages of the stream.
    pub(crate) fn call(&mut self) -> anyhow::Result<&[u8]> {
        self.body.clear();
        self.first_byte_ns = None;
        if self.framing == Framing::Http2 {
            self.number_stream()?;
        }
        self.stream.write_all(&self.request)?;
        match self.framing {
            Framing::Http1 => self.read_http1()?,
            Framing::Http2 => self.read_http2()?,
            Framing::Lengths => self.read_lengths()?,
        }
        Ok(&self.body)
    }

    /// Makes a call with another request over the same connection.
    pub(crate) fn call_with(&mut self, request: Vec<u8>) -> anyhow::Result<&[u8]> {
        self.request = request;
        self.call()
    }

    /// Returns the time of the first bytes of the last reply, in nanoseconds of the laboratory's clock.
    pub(crate) const fn first_byte_ns(&self) -> Option<i64> {
        self.first_byte_ns
    }

    fn read_lengths(&mut self) -> anyhow::Result<()> {
        self.until(4)?;
        let length =
            u32::from_be_bytes([self.received[0], self.received[1], self.received[2], self.received[3]]);
        let end = 4 + length as usize;
        self.until(end)?;
        self.take(4, end);
        self.received.drain(..end);
        Ok(())
    }

    fn read_http1(&mut self) -> anyhow::Result<()> {
        let body = self.until_text(b"\r\n\r\n", 0)?;
        let head = std::str::from_utf8(&self.received[..body]).context("the reply's head is no text")?;
        ensure!(
            head.starts_with("HTTP/1.1 200"),
            "the reply is {:?}",
            head.lines().next().unwrap_or_default()
        );
        match content_length(head) {
            Some(length) => {
                self.until(body + length)?;
                self.take(body, body + length);
                self.received.drain(..body + length);
            }
            None => self.read_chunks(body)?,
        }
        Ok(())
    }

    /// Reads a body in chunks (RFC 9112, 7.1); trailers are not expected.
    fn read_chunks(&mut self, from: usize) -> anyhow::Result<()> {
        let mut at = from;
        loop {
            let data = self.until_text(b"\r\n", at)?;
            let size = std::str::from_utf8(&self.received[at..data - 2])?;
            let size = usize::from_str_radix(size, 16).context("the reply has no length")?;
            let end = data.saturating_add(size);
            self.until(end.saturating_add(2))?;
            self.take(data, end);
            at = end + 2;
            if size == 0 {
                self.received.drain(..at);
                return Ok(());
            }
        }
    }

    /// Writes the next stream id into both frames of the request.
    fn number_stream(&mut self) -> anyhow::Result<()> {
        self.stream_id = self.stream_id.wrapping_add(2);
        ensure!(self.stream_id < 1 << 31, "the connection has no more streams");
        let headers = u32::from_be_bytes([0, self.request[0], self.request[1], self.request[2]]) as usize;
        for start in [0, FRAME_HEAD_BYTES + headers] {
            self.request[start + 5..start + FRAME_HEAD_BYTES].copy_from_slice(&self.stream_id.to_be_bytes());
        }
        Ok(())
    }

    fn read_http2(&mut self) -> anyhow::Result<()> {
        loop {
            self.until(FRAME_HEAD_BYTES)?;
            let [high, middle, low, kind, flags, id @ ..] = &self.received[..FRAME_HEAD_BYTES] else {
                bail!("a frame has no head")
            };
            let (kind, flags, is_ours) = (*kind, *flags, id == self.stream_id.to_be_bytes());
            let end = FRAME_HEAD_BYTES + u32::from_be_bytes([0, *high, *middle, *low]) as usize;
            self.until(end)?;
            self.follow(kind, flags, end)?;
            self.received.drain(..end);
            // HEADERS or DATA with END_STREAM.
            if kind <= 1 && flags & 1 == 1 && is_ours {
                return Ok(());
            }
        }
    }

    /// Handles a frame (RFC 9113, 6).
    fn follow(&mut self, kind: u8, flags: u8, end: usize) -> anyhow::Result<()> {
        match (kind, flags & 1) {
            (0, _) => {
                ensure!(flags & 0x08 == 0, "the reply is padded");
                self.take(FRAME_HEAD_BYTES, end);
            }
            (3 | 7, _) => bail!("the server ended the stream or the connection"),
            // Acknowledges settings, and answers pings with their payload.
            (4, 0) => self.stream.write_all(&[0, 0, 0, 4, 1, 0, 0, 0, 0])?,
            (6, 0) => {
                self.received[4] = 1;
                self.stream.write_all(&self.received[..end])?;
            }
            _ => {}
        }
        Ok(())
    }

    fn take(&mut self, from: usize, to: usize) {
        self.body.extend_from_slice(&self.received[from..to]);
    }

    /// Reads until the buffer has this number of bytes.
    fn until(&mut self, bytes: usize) -> anyhow::Result<()> {
        while self.received.len() < bytes {
            self.read_more()?;
        }
        Ok(())
    }

    /// Reads until this text is received, and returns its end.
    fn until_text(&mut self, text: &[u8], from: usize) -> anyhow::Result<usize> {
        loop {
            let place = self.received[from..].windows(text.len()).position(|window| window == text);
            if let Some(place) = place {
                return Ok(from + place + text.len());
            }
            self.read_more()?;
        }
    }

    fn read_more(&mut self) -> anyhow::Result<()> {
        let filled = self.received.len();
        ensure!(filled < REPLY_MAX_BYTES, "the reply is too long");
        self.received.resize(filled + READ_BYTES, 0);
        let read = self.stream.read(&mut self.received[filled..]);
        self.received.truncate(filled + read.as_ref().copied().unwrap_or(0));
        ensure!(read.context("the reply does not come")? > 0, "the server closed the connection");
        self.first_byte_ns.get_or_insert_with(monotonic_ns);
        Ok(())
    }
}

fn content_length(head: &str) -> Option<usize> {
    let mut lines = head.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = lines.find(|(name, _)| name.eq_ignore_ascii_case("content-length"))?;
    value.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, TcpListener};

    /// Listens, takes one request, and answers with these pieces.
    fn called(framing: Framing, request: &[u8], answer: &'static [&'static [u8]]) -> anyhow::Result<Vec<u8>> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let wanted = request.len();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.read_exact(&mut vec![0; wanted]).unwrap();
            for piece in answer {
                stream.write_all(piece).unwrap();
            }
            // Reads the rest of the caller's bytes until it hangs up; otherwise a reset would discard the answer.
            let _ = stream.read_to_end(&mut Vec::new());
        });
        let replay = Replay { address, framing, hello: Vec::new(), request: request.to_vec() };
        let mut caller = ReplayingCaller::connect(&replay)?;
        let reply = caller.call().map(<[u8]>::to_vec);
        drop(caller);
        server.join().unwrap();
        reply
    }

    #[test]
    fn a_body_in_chunks_is_put_together() {
        let pieces: &[&[u8]] = &[
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r",
            b"\n3\r\nabc\r\n1",
            b"0\r\n0123456789abcdef\r\n0\r\n\r\n",
        ];
        assert_eq!(called(Framing::Http1, b"GET", pieces).unwrap(), b"abc0123456789abcdef");
    }

    #[test]
    fn what_is_no_200_and_what_breaks_off_are_no_replies() {
        let refused: &[&[u8]] = &[b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n"];
        let said = called(Framing::Http1, b"GET", refused).unwrap_err().to_string();
        assert!(said.contains("401"), "{said}");
        let huge: &[&[u8]] = &[b"HTTP/1.1 200 OK\r\n\r\nzz\r\n"];
        assert!(called(Framing::Http1, b"GET", huge).unwrap_err().to_string().contains("no length"));
    }

    #[test]
    fn a_stream_ends_with_its_trailers_and_not_with_those_of_another() {
        let request = [&b"\0\0\x01\x01\x04\0\0\0\0h"[..], b"\0\0\x01\0\x01\0\0\0\0m"].concat();
        let pieces: &[&[u8]] = &[
            b"\0\0\0\x04\0\0\0\0\0",
            b"\0\0\x01\x01\x05\0\0\0\x03t",
            b"\0\0\x02\0\0\0\0\0\x01ok\0\0\x01\x01\x05\0\0\0\x01t",
        ];
        assert_eq!(called(Framing::Http2, &request, pieces).unwrap(), b"ok");
        let reset: &[&[u8]] = &[b"\0\0\x04\x03\0\0\0\0\x01\0\0\0\x02"];
        assert!(
            called(Framing::Http2, &request, reset).unwrap_err().to_string().contains("ended the stream")
        );
    }
}
