//! A call through each face, serialized once and sent repeatedly, so that it costs the caller next to nothing.

use serde_json::{Map, Value, json};
use std::net::SocketAddr;
use stentor_wire::protobuf::fields::{put_field, put_number};

const TEXT_XML: &str = "text/xml; charset=utf-8";

/// HTTP/2's connection preface (RFC 9113, 3.4), with the largest windows of each stream and of the connection, so that no caller has to
/// extend them while it is timed.
const HTTP2_HELLO: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\
    \x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x04\x7f\xff\xff\xff\
    \x00\x00\x04\x08\x00\x00\x00\x00\x00\x7f\xff\x00\x00";

/// Framing of the messages on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// HTTP/1.1, by length or in chunks.
    Http1,
    /// HTTP/2: a stream for each call.
    Http2,
    /// Four bytes of length before each message.
    Lengths,
}

/// A call, under the names that each face has for it.
#[derive(Clone, Debug)]
pub(crate) struct FaceCall {
    /// The operation of the contract.
    pub(crate) operation: &'static str,
    /// Its element in SOAP.
    pub(crate) element: &'static str,
    /// Its path in gRPC.
    pub(crate) method: &'static str,
    /// Its method in REST.
    pub(crate) verb: &'static str,
    /// Its path in REST, with a query.
    pub(crate) path: String,
    /// Number of fields at the front of `fields` that are part of this path; the others are the body, unless the call is a read.
    pub(crate) path_fields: usize,
    /// The fields of its record: number, name, value.
    pub(crate) fields: Vec<ReplayField>,
}

/// Value of a field of a record.
#[derive(Clone, Debug)]
pub(crate) enum FieldValue {
    Text(String),
    Number(i64),
    Texts(Vec<String>),
}

/// A call through one face, ready to be sent repeatedly.
#[derive(Clone, Debug)]
pub(crate) struct Replay {
    /// Address of the server.
    pub(crate) address: SocketAddr,
    pub(crate) framing: Framing,
    /// Bytes before all calls of a connection; empty in HTTP/1.1.
    pub(crate) hello: Vec<u8>,
    /// One call. The ids of streams are zero, if there are any.
    pub(crate) request: Vec<u8>,
}

impl Replay {
    /// Serializes a call to the server at this address; any server that implements the contract can answer it.
    pub(crate) fn of(face: &str, address: SocketAddr, key: &str, call: &FaceCall) -> Self {
        let made = |framing, hello: Vec<u8>, request| Self { address, framing, hello, request };
        let http = |request: HttpRequest<'_>| made(Framing::Http1, Vec::new(), request.bytes(address, key));
        let posted = |path, body: &str| {
            http(HttpRequest { verb: "POST", path, kind: TEXT_XML, body: body.as_bytes(), accept: None })
        };
        let socket = |encoding: &str, request: &[u8]| {
            let hello = json!({"stentor": 1, "key": key, "encoding": encoding}).to_string();
            made(Framing::Lengths, framed(hello.as_bytes()), framed(request))
        };
        match face {
            "rest" => http(call.http("application/json", call.body_record().to_string().as_bytes())),
            "rest+xml" => http(call.http("application/xml", call.body_markup().as_bytes())),
            "rest+protobuf" => {
                http(call.http("application/x-protobuf", &message(&call.fields[call.path_fields..])))
            }
            "soap" => posted("/soap", &call.envelope()),
            "xmlrpc" => posted("/rpc", &call.method_call()),
            "grpc" => made(Framing::Http2, HTTP2_HELLO.to_vec(), http2(address, key, call)),
            "socket+soap" => socket("soap", call.envelope().as_bytes()),
            "socket+protobuf" => socket("protobuf", &call.numbered()),
            _ => {
                let request = json!({"id": 1, "operation": call.operation, "record": record(&call.fields)});
                socket("json", request.to_string().as_bytes())
            }
        }
    }
}

/// A request of HTTP/1.1.
struct HttpRequest<'a> {
    verb: &'static str,
    path: &'a str,
    /// The media type of the body.
    kind: &'static str,
    /// The media type of the reply; the server's default if absent.
    accept: Option<&'static str>,
    body: &'a [u8],
}

impl HttpRequest<'_> {
    fn bytes(&self, address: SocketAddr, key: &str) -> Vec<u8> {
        let Self { verb, path, kind, accept, body } = self;
        let accept = accept.map(|accept| format!("accept: {accept}\r\n")).unwrap_or_default();
        let about_body = if body.is_empty() {
            String::new()
        } else {
            format!("content-type: {kind}\r\ncontent-length: {}\r\n", body.len())
        };
        let head = format!(
            "{verb} {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {key}\r\nconnection: keep-alive\r\n\
             {accept}{about_body}\r\n"
        );
        [head.as_bytes(), body].concat()
    }
}

impl FaceCall {
    /// The call in REST, with this body unless it is a read; JSON is the default of replies.
    fn http<'a>(&'a self, kind: &'static str, body: &'a [u8]) -> HttpRequest<'a> {
        let body = if self.verb == "GET" { &[] } else { body };
        let accept = Some(kind).filter(|kind| *kind != "application/json");
        HttpRequest { verb: self.verb, path: &self.path, kind, accept, body }
    }

    fn body_record(&self) -> Value {
        record(&self.fields[self.path_fields..])
    }

    fn body_markup(&self) -> String {
        let (element, fields) = (self.element, markup(&self.fields[self.path_fields..]));
        format!(r#"<{element} xmlns="urn:stentor:v1">{fields}</{element}>"#)
    }

    /// The call as a numbered request of the raw socket.
    fn numbered(&self) -> Vec<u8> {
        let mut request = Vec::new();
        put_number(1, 1, &mut request);
        put_field(2, self.operation.as_bytes(), &mut request);
        put_field(4, &message(&self.fields), &mut request);
        request
    }

    /// The call as a SOAP 1.1 envelope.
    pub(crate) fn envelope(&self) -> String {
        let (element, fields) = (self.element, markup(&self.fields));
        format!(
            r#"<soap:Envelope xmlns:soap="http://schemas.xmlsoap.org/soap/envelope/"><soap:Body><{element} xmlns="urn:stentor:v1">{fields}</{element}></soap:Body></soap:Envelope>"#
        )
    }

    /// The call as a document of XML-RPC.
    pub(crate) fn method_call(&self) -> String {
        let member = |(_, name, value): &ReplayField| {
            format!("<member><name>{name}</name><value>{}</value></member>", value.xmlrpc())
        };
        let members: String = self.fields.iter().map(member).collect();
        format!(
            "<?xml version=\"1.0\"?><methodCall><methodName>{}</methodName><params><param><value><struct>{members}\
             </struct></value></param></params></methodCall>",
            self.operation
        )
    }
}

/// A field: number, name, value.
type ReplayField = (u8, &'static str, FieldValue);

fn record(fields: &[ReplayField]) -> Value {
    let fields = fields.iter().map(|(_, name, value)| ((*name).to_owned(), value.json()));
    Value::Object(fields.collect::<Map<_, _>>())
}

/// Writes fields as elements; the values of these calls contain no character that XML would need to escape.
fn markup(fields: &[ReplayField]) -> String {
    let one = |(_, name, value): &ReplayField| {
        let each = value.texts().into_iter().map(|text| format!("<{name}>{text}</{name}>"));
        each.collect::<String>()
    };
    fields.iter().map(one).collect()
}

/// Writes fields as a message of Protocol Buffers.
fn message(fields: &[ReplayField]) -> Vec<u8> {
    let mut message = Vec::new();
    for (number, _, value) in fields {
        let number = u32::from(*number);
        match value {
            FieldValue::Number(value) => put_number(number, value.cast_unsigned(), &mut message),
            texts => {
                for text in texts.texts() {
                    put_field(number, text.as_bytes(), &mut message);
                }
            }
        }
    }
    message
}

impl FieldValue {
    fn json(&self) -> Value {
        match self {
            Self::Text(text) => json!(text),
            Self::Number(number) => json!(number),
            Self::Texts(texts) => json!(texts),
        }
    }

    /// Lists the texts of the value.
    fn texts(&self) -> Vec<String> {
        match self {
            Self::Text(text) => vec![text.clone()],
            Self::Number(number) => vec![number.to_string()],
            Self::Texts(texts) => texts.clone(),
        }
    }

    fn xmlrpc(&self) -> String {
        match self {
            Self::Text(text) => format!("<string>{text}</string>"),
            Self::Number(number) => format!("<int>{number}</int>"),
            Self::Texts(texts) => {
                let each = texts.iter().map(|text| format!("<value><string>{text}</string></value>"));
                format!("<array><data>{}</data></array>", each.collect::<String>())
            }
        }
    }
}

fn framed(body: &[u8]) -> Vec<u8> {
    [&length(body.len()), body].concat()
}

/// One call of gRPC: its headers, all of them as literals without indexing (RFC 7541, 6.2.2), so that every call has the same bytes, and
/// its message.
fn http2(address: SocketAddr, key: &str, call: &FaceCall) -> Vec<u8> {
    let record = message(&call.fields);
    let message = [&[0][..], &length(record.len()), &record].concat();
    // `:method: POST` and `:scheme: http` of the static table.
    let mut headers = vec![0x83, 0x86];
    literal(&mut headers, &[0x04], call.method);
    literal(&mut headers, &[0x01], &address.to_string());
    literal(&mut headers, &[0x0f, 0x10], "application/grpc");
    literal(&mut headers, &[0x0f, 0x08], &format!("Bearer {key}"));
    literal(&mut headers, b"\x00\x02te", "trailers");
    // END_HEADERS, and END_STREAM after the message.
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

/// A length in one byte. All headers of these calls are shorter than 127 bytes; the server would refuse a longer one, which would be
/// noticed.
fn short(length: usize) -> u8 {
    u8::try_from(length).unwrap_or(u8::MAX)
}

fn length(bytes: usize) -> [u8; 4] {
    u32::try_from(bytes).unwrap_or(u32::MAX).to_be_bytes()
}
