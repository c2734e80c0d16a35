//! A call through each face, written once: what a caller sends again and again, so that it costs the caller next to nothing.

use serde_json::{Map, Value, json};
use std::net::SocketAddr;

/// HTTP/2's connection preface (RFC 9113, 3.4), an empty frame of settings, and all the window of the connection there can
/// be, so that no caller has to give more while it is timed.
const HTTP2_HELLO: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\
    \x00\x00\x00\x04\x00\x00\x00\x00\x00\
    \x00\x00\x04\x08\x00\x00\x00\x00\x00\x7f\xff\x00\x00";

/// How one message ends and the next begins on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// HTTP/1.1, by length or in chunks.
    Http1,
    /// HTTP/2: a stream for each call.
    Http2,
    /// Four bytes of length before each message.
    Lengths,
}

/// What is asked, under the names that each face has for it: a read, and texts alone.
#[derive(Clone, Debug)]
pub(crate) struct FaceCall {
    /// The operation of the contract.
    pub(crate) operation: &'static str,
    /// Its element in SOAP.
    pub(crate) element: &'static str,
    /// Its path in gRPC.
    pub(crate) method: &'static str,
    /// Its path in REST, with what it asks for in the query.
    pub(crate) path: String,
    /// The fields of its record: number, name, value.
    pub(crate) fields: Vec<(u8, &'static str, FieldValue)>,
}

/// What a field of a record holds.
#[derive(Clone, Debug)]
pub(crate) enum FieldValue {
    Text(String),
    Number(i64),
}

/// A call through one face, ready to be made as often as wanted.
#[derive(Clone, Debug)]
pub(crate) struct Replay {
    /// Where it goes.
    pub(crate) address: SocketAddr,
    pub(crate) framing: Framing,
    /// What goes before all calls of a connection; nothing in HTTP/1.1.
    pub(crate) hello: Vec<u8>,
    /// One call. The numbers of streams are left at zero where there are any.
    pub(crate) request: Vec<u8>,
}

impl Replay {
    /// Writes a call of the server at this address; a server that keeps the contract answers, whoever made it.
    pub(crate) fn of(face: &str, address: SocketAddr, key: &str, call: &FaceCall) -> Self {
        let made = |framing, hello: Vec<u8>, request| Self { address, framing, hello, request };
        let posted = |path: &str, body: String| http1(address, key, "POST", path, &body);
        match face {
            "rest" => made(Framing::Http1, Vec::new(), http1(address, key, "GET", &call.path, "")),
            "soap" => made(Framing::Http1, Vec::new(), posted("/soap", call.envelope())),
            "xmlrpc" => made(Framing::Http1, Vec::new(), posted("/rpc", call.method_call())),
            "grpc" => made(Framing::Http2, HTTP2_HELLO.to_vec(), http2(address, key, call)),
            _ => {
                let hello = framed(&json!({"stentor": 1, "key": key}));
                let request = json!({"id": 1, "operation": call.operation, "record": call.record()});
                made(Framing::Lengths, hello, framed(&request))
            }
        }
    }
}

impl FaceCall {
    fn record(&self) -> Value {
        let fields = self.fields.iter().map(|(_, name, value)| ((*name).to_owned(), value.json()));
        Value::Object(fields.collect::<Map<_, _>>())
    }

    /// The call as a SOAP 1.1 envelope.
    pub(crate) fn envelope(&self) -> String {
        let field = |(_, name, value): &(u8, &str, FieldValue)| format!("<{name}>{}</{name}>", value.text());
        let fields: String = self.fields.iter().map(field).collect();
        let element = self.element;
        format!(
            r#"<soap:Envelope xmlns:soap="http://schemas.xmlsoap.org/soap/envelope/"><soap:Body><{element} xmlns="urn:stentor:v1">{fields}</{element}></soap:Body></soap:Envelope>"#
        )
    }

    /// The call as a document of XML-RPC.
    pub(crate) fn method_call(&self) -> String {
        let member = |(_, name, value): &(u8, &str, FieldValue)| {
            let kind = value.xmlrpc_type();
            format!("<member><name>{name}</name><value><{kind}>{}</{kind}></value></member>", value.text())
        };
        let members: String = self.fields.iter().map(member).collect();
        format!(
            "<?xml version=\"1.0\"?><methodCall><methodName>{}</methodName><params><param><value><struct>{members}\
             </struct></value></param></params></methodCall>",
            self.operation
        )
    }

    /// The record as a message of Protocol Buffers.
    fn message(&self) -> Vec<u8> {
        let mut message = Vec::new();
        for (number, _, value) in &self.fields {
            match value {
                FieldValue::Text(text) => {
                    message.extend([number << 3 | 2, short(text.len())]);
                    message.extend_from_slice(text.as_bytes());
                }
                FieldValue::Number(value) => {
                    message.push(number << 3);
                    varint(&mut message, value.cast_unsigned());
                }
            }
        }
        message
    }
}

impl FieldValue {
    fn json(&self) -> Value {
        match self {
            Self::Text(text) => json!(text),
            Self::Number(number) => json!(number),
        }
    }

    /// Returns it as XML carries it; what is asked for here has no character that XML would need to escape.
    fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Number(number) => number.to_string(),
        }
    }

    const fn xmlrpc_type(&self) -> &'static str {
        match self {
            Self::Text(_) => "string",
            Self::Number(_) => "int",
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

fn framed(message: &Value) -> Vec<u8> {
    let body = message.to_string();
    [&length(body.len()), body.as_bytes()].concat()
}

/// One call of gRPC: its headers, all of them as literals that no table keeps (RFC 7541, 6.2.2), so that every call has the
/// same bytes, and its message.
fn http2(address: SocketAddr, key: &str, call: &FaceCall) -> Vec<u8> {
    let record = call.message();
    let message = [&[0][..], &length(record.len()), &record].concat();
    // `:method: POST` and `:scheme: http` of the static table.
    let mut headers = vec![0x83, 0x86];
    literal(&mut headers, &[0x04], call.method);
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

fn varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn length(bytes: usize) -> [u8; 4] {
    u32::try_from(bytes).unwrap_or(u32::MAX).to_be_bytes()
}
