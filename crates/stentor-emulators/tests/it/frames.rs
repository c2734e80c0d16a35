//! A client that speaks HTTP/2 frame by frame, to see details that a library would hide.

use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;
const ACK: u8 = 1;
const MAX_CONCURRENT_STREAMS: u16 = 3;
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// One frame as it came.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

impl Frame {
    pub(crate) fn ends_stream(&self) -> bool {
        self.flags & END_STREAM != 0
    }

    /// The first 32-bit number of the payload: a GOAWAY's last stream id, an RST_STREAM's code.
    pub(crate) fn number(&self) -> u32 {
        u32::from_be_bytes(self.payload[..4].try_into().unwrap())
    }

    /// The stream limit in a SETTINGS frame.
    pub(crate) fn stream_limit(&self) -> Option<u32> {
        let limit =
            self.payload.chunks(6).find(|s| u16::from_be_bytes([s[0], s[1]]) == MAX_CONCURRENT_STREAMS)?;
        Some(u32::from_be_bytes(limit[2..].try_into().unwrap()))
    }
}

/// A plaintext connection.
pub(crate) struct Raw {
    stream: TcpStream,
}

impl Raw {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let mut raw = Self { stream: TcpStream::connect(address).await.unwrap() };
        raw.stream.write_all(PREFACE).await.unwrap();
        raw.write(SETTINGS, 0, 0, &[]).await;
        raw
    }

    pub(crate) async fn write(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let length = (payload.len() as u32).to_be_bytes();
        let mut frame = vec![length[1], length[2], length[3], kind, flags];
        frame.extend_from_slice(&stream.to_be_bytes());
        frame.extend_from_slice(payload);
        self.stream.write_all(&frame).await.unwrap();
    }

    pub(crate) async fn acknowledge_settings(&mut self) {
        self.write(SETTINGS, ACK, 0, &[]).await;
    }

    /// Waits until the peer has taken everything that was written so far.
    pub(crate) async fn ping(&mut self) {
        self.write(PING, 0, 0, &[0; 8]).await;
        self.read_kind(PING).await;
    }

    pub(crate) async fn push(&mut self, stream: u32, token: &str) {
        let path = format!("/3/device/{token}");
        let headers = [(":authority", "localhost:443"), ("apns-topic", "com.example.app")];
        self.request(stream, &path, &headers, crate::rig::ALERT).await;
    }

    pub(crate) async fn request(&mut self, stream: u32, path: &str, headers: &[(&str, &str)], body: &[u8]) {
        let mut block = Vec::new();
        for (name, value) in
            [(":method", "POST"), (":scheme", "https"), (":path", path)].iter().chain(headers)
        {
            block.push(0);
            for text in [name, value] {
                assert!(text.len() < 127, "one byte of length is enough here");
                block.push(text.len() as u8);
                block.extend_from_slice(text.as_bytes());
            }
        }
        self.write(HEADERS, END_HEADERS, stream, &block).await;
        self.write(DATA, END_STREAM, stream, body).await;
    }

    /// Reads the next frame; `None` at the end of the connection.
    pub(crate) async fn read(&mut self) -> Option<Frame> {
        let mut header = [0; 9];
        self.stream.read_exact(&mut header).await.ok()?;
        let length = u32::from_be_bytes([0, header[0], header[1], header[2]]) as usize;
        let mut payload = vec![0; length];
        self.stream.read_exact(&mut payload).await.ok()?;
        let stream = u32::from_be_bytes(header[5..].try_into().unwrap());
        Some(Frame { kind: header[3], flags: header[4], stream, payload })
    }

    /// Reads until a frame of a kind comes.
    pub(crate) async fn read_kind(&mut self, kind: u8) -> Frame {
        loop {
            let frame = self.read().await.expect("the connection ended before the frame came");
            if frame.kind == kind && !(kind == SETTINGS && frame.flags & ACK != 0) {
                return frame;
            }
        }
    }

    /// Reads all frames of one stream, up to the one that ends it.
    pub(crate) async fn read_stream(&mut self, stream: u32) -> Vec<Frame> {
        let mut frames = Vec::new();
        loop {
            let frame = self.read().await.expect("the connection ended before the stream");
            if frame.stream == stream {
                let last = frame.kind == RST_STREAM || frame.ends_stream();
                frames.push(frame);
                if last {
                    return frames;
                }
            }
        }
    }

    /// Reads to the end of the connection.
    pub(crate) async fn read_to_end(&mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        while let Some(frame) = self.read().await {
            frames.push(frame);
        }
        frames
    }
}
