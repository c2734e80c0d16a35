//! A request of each face, written once: what a caller sends again and again, so that it costs the caller next to nothing.

use serde_json::{Value, json};
use std::net::SocketAddr;

/// What is asked through every face: a read of one record.
pub const OPERATION: &str = "devices.show";
/// The faces, in the order in which they take turns.
pub(super) const FACES: [&str; 5] = ["rest", "soap", "xmlrpc", "grpc", "socket"];

/// HTTP/2's connection preface (RFC 9113, 3.4), an empty frame of settings, and all the window of the connection there can
/// be, so that no caller has to give more while it is timed.
const HTTP2_HELLO: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\
    \x00\x00\x00\x04\x00\x00\x00\x00\x00\
    \x00\x00\x04\x08\x00\x00\x00\x00\x00\x7f\xff\x00\x00";

/// How one message ends and the next begins on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// HTTP/1.1, by length or in chunks.
    Http1,
    /// HTTP/2: a stream for each call.
    Http2,
    /// Four bytes of length before each message.
    Lengths,
}

/// A request of one face, ready to be sent as often as wanted.
#[derive(Clone, Debug)]
pub(super) struct Replay {
    /// Where it goes.
    pub(super) address: SocketAddr,
    pub(super) framing: Framing,
    /// What goes before all calls of a connection; nothing in HTTP/1.1.
    pub(super) hello: Vec<u8>,
    /// One call. The numbers of streams are left at zero where there are any.
    pub(super) request: Vec<u8>,
}

impl Replay {
    /// Writes what asks a server at this address for a device through one face; a server that keeps the contract answers,
    /// whoever made it.
    pub(super) fn of(face: &str, address: SocketAddr, key: &str, device: &str) -> Self {
        let made = |framing, hello: Vec<u8>, request| Self { address, framing, hello, request };
        let posted = |path: &str, body: String| http1(address, key, "POST", path, &body);
        match face {
            "rest" => {
                let request = http1(address, key, "GET", &format!("/v1/devices/{device}"), "");
                made(Framing::Http1, Vec::new(), request)
            }
            "soap" => made(Framing::Http1, Vec::new(), posted("/soap", envelope(device))),
            "xmlrpc" => made(Framing::Http1, Vec::new(), posted("/rpc", method_call(device))),
            "grpc" => made(Framing::Http2, HTTP2_HELLO.to_vec(), http2(address, key, device)),
            _ => {
                let hello = framed(&json!({"stentor": 1, "key": key}));
                let record = json!({"device": device});
                let request = json!({"id": 1, "operation": OPERATION, "record": record});
                made(Framing::Lengths, hello, framed(&request))
            }
        }
    }
}

fn http1(address: SocketAddr, key: &str, method: &str, path: &str, body: &str) -> Vec<u8> {
    let about_body = if body.is_empty() {
        String::new()
    } else {
        format!("content-type: text/xml; charset=utf-8\r\ncontent-length: {}\r\n", body.len())
    };
    format!(
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {key}\r\nconnection: keep-alive\r\n\
         {about_body}\r\n{body}"
    )
    .into_bytes()
}

fn envelope(device: &str) -> String {
    format!(
        r#"<soap:Envelope xmlns:soap="http://schemas.xmlsoap.org/soap/envelope/"><soap:Body><ShowDevice xmlns="urn:stentor:v1"><device>{device}</device></ShowDevice></soap:Body></soap:Envelope>"#
    )
}

fn method_call(device: &str) -> String {
    format!(
        "<?xml version=\"1.0\"?><methodCall><methodName>{OPERATION}</methodName><params><param><value><struct>\
         <member><name>device</name><value><string>{device}</string></value></member>\
         </struct></value></param></params></methodCall>"
    )
}

fn framed(message: &Value) -> Vec<u8> {
    let body = message.to_string();
    [&length(body.len()), body.as_bytes()].concat()
}

/// One call of gRPC: its headers, all of them as literals that no table keeps (RFC 7541, 6.2.2), so that every call has the
/// same bytes, and its message.
fn http2(address: SocketAddr, key: &str, device: &str) -> Vec<u8> {
    // Field 1, text (`ShowDeviceRequest.device`).
    let record = [&[0x0a, short(device.len())][..], device.as_bytes()].concat();
    let message = [&[0][..], &length(record.len()), &record].concat();
    // `:method: POST` and `:scheme: http` of the static table.
    let mut headers = vec![0x83, 0x86];
    literal(&mut headers, &[0x04], "/stentor.v1.Devices/ShowDevice");
    literal(&mut headers, &[0x01], &address.to_string());
    literal(&mut headers, &[0x0f, 0x10], "application/grpc");
    literal(&mut headers, &[0x0f, 0x08], &format!("Bearer {key}"));
    literal(&mut headers, b"\x00\x02te", "trailers");
    // END_HEADERS, and END_STREAM behind the message.
    [frame(1, 0x04, &headers), frame(0, 0x01, &message)].concat()
}

fn literal(headers: &mut Vec<u8>, name: &[u8], value: &str) {
    headers.extend_from_slice(name);
    headers.push(short(value.len()));
    headers.extend_from_slice(value.as_bytes());
}

fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
    let [_, head @ ..] = length(payload.len());
    [&head[..], &[kind, flags, 0, 0, 0, 0], payload].concat()
}

/// A length in one byte: what is sent here is shorter than 127 bytes, and what is not would be refused and noticed.
fn short(length: usize) -> u8 {
    u8::try_from(length).unwrap_or(u8::MAX)
}

fn length(bytes: usize) -> [u8; 4] {
    u32::try_from(bytes).unwrap_or(u32::MAX).to_be_bytes()
}
