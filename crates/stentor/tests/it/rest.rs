//! REST in all its variants through a running server: formats, compression, conditions, and refused requests.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use async_compression::tokio::bufread::{GzipDecoder, GzipEncoder, ZstdDecoder, ZstdEncoder};
use futures_util::future::join_all;
use reqwest::header::HeaderMap;
use reqwest::{Client, Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use stentor_server::face::record::protobuf::Schema;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, repeat};

use crate::server::Server;

const XML: &str = "application/xml";
const PROTOBUF: &str = "application/x-protobuf";
const MIB: usize = 1_024 * 1_024;
/// Largest growth of the server's memory while it refuses bodies that would unpack to a gibibyte.
const GROWTH_MAX_BYTES: u64 = 64 * MIB as u64;
/// Largest memory for ten concurrent documents of 50,000 elements.
const TREES_MAX_BYTES: u64 = 256 * MIB as u64;

/// A server with an app, and the app's key.
struct Shop {
    _directory: TempDir,
    server: Server,
    key: String,
    client: Client,
}

/// A complete reply.
#[derive(Debug)]
struct Told {
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Shop {
    fn open() -> Self {
        let directory = TempDir::new().unwrap();
        let server = Server::start(directory.path());
        let made = server.ok(&["app", "create", "shop"]);
        server.ok(&["app", "credential", "set", "--provider", "null"]);
        let key = made["key"]["secret"].as_str().unwrap().to_owned();
        Self { _directory: directory, server, key, client: Client::new() }
    }

    fn ask(&self, method: Method, path: &str) -> RequestBuilder {
        let address = format!("{}{path}", self.server.process.url());
        self.client.request(method, address).bearer_auth(&self.key)
    }

    fn post(&self, path: &str, kind: &str, body: impl Into<Vec<u8>>) -> RequestBuilder {
        self.ask(Method::POST, path).header("content-type", kind).body(body.into())
    }

    async fn device(&self, token: &str) -> String {
        let body = json!({"platform": "android", "provider": "null", "token": token});
        let response = told(self.ask(Method::POST, "/v1/devices").json(&body)).await;
        response.json()["id"].as_str().unwrap().to_owned()
    }
}

impl Told {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("{self:?}"))
    }

    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    fn refused(&self) -> (u16, String) {
        (self.status.as_u16(), self.json()["code"].as_str().unwrap_or_default().to_owned())
    }
}

async fn told(request: RequestBuilder) -> Told {
    let reply = request.send().await.unwrap_or_else(|error| panic!("{error:?}"));
    let (status, headers) = (reply.status(), reply.headers().clone());
    Told { status, headers, body: reply.bytes().await.unwrap().into() }
}

async fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = Vec::new();
    GzipEncoder::new(bytes).read_to_end(&mut packed).await.unwrap();
    packed
}

#[tokio::test]
async fn what_is_registered_in_xml_is_read_in_protocol_buffers_and_sent_to_in_compressed_json() {
    let shop = Shop::open();
    let document = "<RegisterDevice xmlns=\"urn:stentor:v1\"><platform>android</platform><provider>null</provider>\
                    <token>a-token-of-the-shop</token><user>Zo\u{eb} &amp; co</user><tags>new</tags><tags>old</tags></RegisterDevice>";
    let made = told(shop.post("/v1/devices", XML, document).header("accept", XML)).await;
    assert_eq!((made.status, made.header("content-type")), (StatusCode::CREATED, XML), "{made:?}");
    let address = made.header("location").to_owned();
    let id = address.strip_prefix("/v1/devices/").unwrap();
    assert!(made.text().contains(&format!("<id>{id}</id>")), "{}", made.text());

    let read = told(shop.ask(Method::GET, &address).header("accept", PROTOBUF)).await;
    assert_eq!(read.header("content-type"), PROTOBUF);
    let device = Schema::get().read("Device", &read.body, &Default::default()).unwrap();
    let plain = told(shop.ask(Method::GET, &address)).await.json();
    assert_eq!(Value::Object(device), plain);
    assert_eq!((&plain["tags"], &plain["user"]), (&json!(["new", "old"]), &json!("Zo\u{eb} & co")));

    let message = json!({"target": {"device": id}, "notification": {"body": "hello"}}).to_string();
    let sent = shop.post("/v1/messages", "application/json", gzip(message.as_bytes()).await);
    let sent = told(sent.header("content-encoding", "gzip")).await;
    assert_eq!(sent.status, StatusCode::ACCEPTED, "{sent:?}");
    let shown = told(shop.ask(Method::GET, sent.header("location"))).await.json();
    assert_eq!(shown["notification"]["body"], json!("hello"));
}

#[tokio::test]
async fn a_request_in_protocol_buffers_is_the_same_request_under_its_idempotency_key() {
    let shop = Shop::open();
    let device = shop.device("a-token").await;
    let record = json!({"target": {"device": device}, "notification": {"body": "once"}});
    let message = Schema::get().write("SendMessageRequest", record.as_object().unwrap()).unwrap();
    let first = shop.post("/v1/messages", PROTOBUF, message).header("accept", PROTOBUF);
    let first = told(first.header("idempotency-key", "one")).await;
    assert_eq!(first.status, StatusCode::ACCEPTED, "{first:?}");
    let sent = Schema::get().read("Sent", &first.body, &Default::default()).unwrap();
    let again = shop.ask(Method::POST, "/v1/messages").json(&record).header("idempotency-key", "one");
    let again = told(again).await;
    assert_eq!(again.header("idempotent-replayed"), "true");
    assert_eq!(again.json(), sent["accepted"]);
}

#[tokio::test]
async fn a_reader_is_told_what_is_new_and_a_change_of_an_older_state_is_refused() {
    let shop = Shop::open();
    let path = format!("/v1/devices/{}", shop.device("a-token").await);
    let read = told(shop.ask(Method::GET, &path)).await;
    let tag = read.header("etag").to_owned();
    let again = told(shop.ask(Method::GET, &path).header("if-none-match", &tag)).await;
    assert_eq!((again.status, again.body.len(), again.header("etag")), (StatusCode::NOT_MODIFIED, 0, &*tag));
    let in_xml = told(shop.ask(Method::GET, &path).header("accept", XML).header("if-none-match", &tag)).await;
    assert_eq!(in_xml.status, StatusCode::OK, "another form has a tag of its own");

    let change = |tag: &str, locale: &str| {
        let change = shop.ask(Method::PATCH, &path).header("if-match", tag);
        told(change.json(&json!({"locale": locale})))
    };
    let changed = change(in_xml.header("etag"), "de").await;
    assert_eq!(changed.status, StatusCode::OK, "{changed:?}");
    let late = change(&tag, "fr").await;
    assert_eq!(late.refused(), (412, "precondition_failed".to_owned()));
    let now = told(shop.ask(Method::GET, &path)).await;
    assert_eq!((now.json()["locale"].as_str(), now.header("etag")), (Some("de"), changed.header("etag")));
    let gone = told(shop.ask(Method::DELETE, &path).header("if-match", &tag)).await;
    assert_eq!(gone.status, StatusCode::PRECONDITION_FAILED);
    let gone = told(shop.ask(Method::DELETE, &path).header("if-match", now.header("etag"))).await;
    assert_eq!(gone.status, StatusCode::NO_CONTENT);
    let nothing = told(shop.ask(Method::DELETE, &path).header("if-match", "*")).await;
    assert_eq!(nothing.status, StatusCode::NOT_FOUND);
    let bare = told(shop.ask(Method::POST, "/v1/messages").header("if-match", "*").json(&json!({
        "target": "everyone", "data": {"k": "v"}
    })));
    assert_eq!(bare.await.status, StatusCode::PRECONDITION_FAILED, "a condition is never passed over");
}

#[tokio::test]
async fn a_field_is_cleared_in_each_format() {
    let shop = Shop::open();
    let path = format!("/v1/devices/{}", shop.device("a-token").await);
    let instance = "http://www.w3.org/2001/XMLSchema-instance";
    let nil = format!("<ChangeDevice xmlns:xsi=\"{instance}\"><locale xsi:nil=\"true\"/></ChangeDevice>");
    let record = json!({"locale": null});
    let message = Schema::get().write("ChangeDeviceRequest", record.as_object().unwrap()).unwrap();
    assert!(message.windows(6).any(|name| name == b"locale"), "it names what it clears: {message:?}");
    let forms =
        [("application/json", record.to_string().into_bytes()), (XML, nil.into_bytes()), (PROTOBUF, message)];
    for (kind, body) in forms {
        let set = told(shop.ask(Method::PATCH, &path).json(&json!({"locale": "de"}))).await;
        assert_eq!(set.json()["locale"], "de", "{set:?}");
        let cleared = shop.ask(Method::PATCH, &path).header("content-type", kind).body(body);
        let cleared = told(cleared).await;
        assert_eq!(
            (cleared.status, &cleared.json()["locale"]),
            (StatusCode::OK, &Value::Null),
            "{kind}: {cleared:?}"
        );
    }
}

#[tokio::test]
async fn of_many_changes_of_one_state_one_is_made() {
    let shop = Arc::new(Shop::open());
    let path = format!("/v1/devices/{}", shop.device("a-token").await);
    let tag = told(shop.ask(Method::GET, &path)).await.header("etag").to_owned();
    let changes = (0..16).map(|at| {
        let change = shop.ask(Method::PATCH, &path).header("if-match", &tag);
        told(change.json(&json!({"tags": [format!("t{at}")]})))
    });
    let responses = join_all(changes).await;
    let made = responses.iter().filter(|one| one.status == StatusCode::OK).count();
    let refused = responses.iter().filter(|one| one.status == StatusCode::PRECONDITION_FAILED).count();
    assert_eq!((made, refused), (1, 15));
}

#[tokio::test]
async fn a_person_is_made_only_where_there_is_none_when_that_is_the_condition() {
    let shop = Shop::open();
    let put = || told(shop.ask(Method::PUT, "/v1/users/u1").header("if-none-match", "*"));
    assert_eq!(put().await.status, StatusCode::OK);
    assert_eq!(put().await.status, StatusCode::PRECONDITION_FAILED);
    let other = told(shop.ask(Method::PUT, "/v1/users/u2").header("if-match", "*")).await;
    assert_eq!(other.status, StatusCode::PRECONDITION_FAILED);
}

#[tokio::test]
async fn what_is_not_taken_or_not_to_be_had_is_refused_with_what_is() {
    let shop = Shop::open();
    let other = told(shop.post("/v1/devices", "text/plain", "x")).await;
    assert_eq!(other.refused(), (415, "unsupported_media_type".to_owned()));
    for kind in ["application/json", XML, PROTOBUF] {
        assert!(other.text().contains(kind), "{}", other.text());
    }
    let none = told(shop.ask(Method::GET, "/v1/devices").header("accept", "text/html, */*;q=0")).await;
    assert_eq!(none.refused(), (406, "not_acceptable".to_owned()));
    let packed = shop.post("/v1/devices", "application/json", "{}").header("content-encoding", "br");
    let packed = told(packed).await;
    assert_eq!(packed.refused(), (415, "unsupported_encoding".to_owned()));
    assert_eq!(packed.header("accept-encoding"), "zstd, gzip, identity");
    let broken = shop.post("/v1/devices", "application/json", "{}").header("content-encoding", "gzip");
    assert_eq!(told(broken).await.refused(), (400, "invalid_request".to_owned()));
}

#[tokio::test]
async fn refusals_are_written_in_the_format_that_is_accepted() {
    let shop = Shop::open();
    let ask =
        |kind: &str| told(shop.ask(Method::GET, "/v1/devices/dev_0000000000009").header("accept", kind));
    let in_xml = ask(XML).await;
    assert_eq!((in_xml.status.as_u16(), in_xml.header("content-type")), (404, "application/problem+xml"));
    assert!(in_xml.text().contains("<problem xmlns=\"urn:ietf:rfc:7807\">"), "{}", in_xml.text());
    assert!(in_xml.text().contains("<code>not_found</code>"), "{}", in_xml.text());
    let record = ask(PROTOBUF).await;
    assert_eq!((record.status.as_u16(), record.header("content-type")), (404, PROTOBUF));
    let refused = Schema::get().read("Refused", &record.body, &Default::default()).unwrap();
    assert_eq!(
        (&refused["code"], &refused["request_id"]),
        (&json!("not_found"), &json!(record.header("x-request-id")))
    );
    let nowhere =
        told(shop.client.get(format!("{}/nowhere", shop.server.process.url())).header("accept", XML));
    assert_eq!(nowhere.await.header("content-type"), "application/problem+xml");
}

#[tokio::test]
async fn long_replies_are_compressed_as_wanted_and_each_form_has_a_tag_of_its_own() {
    let shop = Shop::open();
    join_all((0..40).map(|at| format!("a-token-{at}")).map(|token| {
        let shop = &shop;
        async move { shop.device(&token).await }
    }))
    .await;
    let list = |wanted: &str| told(shop.ask(Method::GET, "/v1/devices").header("accept-encoding", wanted));
    let (plain, gzip, zstd) = (list("identity").await, list("gzip").await, list("gzip, zstd").await);
    assert_eq!([plain.header("content-encoding"), gzip.header("content-encoding")], ["", "gzip"]);
    assert_eq!(zstd.header("content-encoding"), "zstd");
    let (mut unpacked, mut other) = (Vec::new(), Vec::new());
    GzipDecoder::new(&gzip.body[..]).read_to_end(&mut unpacked).await.unwrap();
    ZstdDecoder::new(&zstd.body[..]).read_to_end(&mut other).await.unwrap();
    assert!(unpacked == plain.body && other == plain.body && gzip.body.len() < plain.body.len() / 4);
    let tags = [&plain, &gzip, &zstd].map(|one| one.header("etag"));
    assert!(tags[0] != tags[1] && tags[1] != tags[2] && tags[0] != tags[2], "{tags:?}");
    assert!(plain.header("vary").contains("accept-encoding"), "{plain:?}");
    let known = shop.ask(Method::GET, "/v1/devices").header("accept-encoding", "gzip");
    assert_eq!(told(known.header("if-none-match", tags[1])).await.status, StatusCode::NOT_MODIFIED);
    let short = told(shop.ask(Method::GET, "/v1/topics").header("accept-encoding", "gzip")).await;
    assert_eq!(short.header("content-encoding"), "", "a short reply is not worth it");
}

#[tokio::test]
async fn what_unpacks_to_a_gibibyte_is_refused_and_takes_no_memory() {
    let shop = Shop::open();
    let member = gzip(&vec![0; MIB]).await;
    let mut zstd = Vec::new();
    let zeros = tokio::io::BufReader::new(repeat(0).take(1 << 30));
    ZstdEncoder::new(zeros).read_to_end(&mut zstd).await.unwrap();
    let before = shop.server.process.peak_bytes();
    // gzip packs a gibibyte into a mebibyte at best: a body refused for its packed size already would test nothing.
    for (path, kind, members) in [
        ("/v1/messages", "application/json", 100),
        ("/v1/devices", XML, 900),
        ("/v1/devices/import", "application/x-ndjson", 1_024),
    ] {
        for (coding, bomb) in [("gzip", member.repeat(members)), ("zstd", zstd.clone())] {
            let response = told(shop.post(path, kind, bomb).header("content-encoding", coding)).await;
            let refused = (response.status.as_u16(), response.text().contains("payload_too_large"));
            assert_eq!(refused, (413, true), "{coding} to {path}: {response:?}");
        }
    }
    let grown = shop.server.process.peak_bytes().saturating_sub(before);
    assert!(grown < GROWTH_MAX_BYTES, "{grown} bytes");
}

#[tokio::test]
async fn a_message_of_grpc_that_unpacks_to_a_hundred_mebibytes_is_refused_and_takes_no_memory() {
    let shop = Shop::open();
    let client = Client::builder().http2_prior_knowledge().build().unwrap();
    // A single member: data after the first one is refused for a different reason.
    let bomb = gzip(&vec![0; 100 * MIB]).await;
    let before = shop.server.process.peak_bytes();
    for method in ["Devices/RegisterDevice", "Messages/SendMessages"] {
        let length = u32::try_from(bomb.len()).unwrap().to_be_bytes();
        let request = client.post(format!("{}/stentor.v1.{method}", shop.server.process.url()));
        let request = request.bearer_auth(&shop.key).header("content-type", "application/grpc");
        let request = request.header("te", "trailers").header("grpc-encoding", "gzip");
        let response = told(request.body([&[1][..], &length, &bomb].concat())).await;
        // RESOURCE_EXHAUSTED, in the headers because the reply has no body.
        assert_eq!(
            (response.status.as_u16(), response.header("grpc-status")),
            (200, "8"),
            "{method}: {response:?}"
        );
    }
    let grown = shop.server.process.peak_bytes().saturating_sub(before);
    assert!(grown < GROWTH_MAX_BYTES, "{grown} bytes");
}

#[tokio::test]
async fn the_largest_document_that_is_read_takes_little_memory_and_a_larger_one_none() {
    let shop = Shop::open();
    let before = shop.server.process.peak_bytes();
    let names = |count: usize| "<tags>a</tags>".repeat(count);
    let registration =
        |inside: &str| format!("<RegisterDevice xmlns=\"urn:stentor:v1\">{inside}</RegisterDevice>");
    let envelope = |inside: &str| {
        let namespace = "http://schemas.xmlsoap.org/soap/envelope/";
        format!("<s:Envelope xmlns:s=\"{namespace}\"><s:Body>{}</s:Body></s:Envelope>", registration(inside))
    };
    let values = |count: usize| {
        let list = format!("<array><data>{}</data></array>", "<value><i4>1</i4></value>".repeat(count));
        let params = format!("<params><param><value>{list}</value></param></params>");
        format!("<methodCall><methodName>devices.register</methodName>{params}</methodCall>")
    };
    // The maximal number of elements, and more; XML-RPC is read without a tree, and limited by its bytes.
    for (path, kind, document, is_read) in [
        ("/v1/devices", XML, registration(&names(9_000)), true),
        ("/soap", "text/xml", envelope(&names(49_000)), true),
        ("/soap", "text/xml", envelope(&names(60_000)), false),
        ("/rpc", "text/xml", values(40_000), true),
    ] {
        assert!(document.len() < MIB, "{path}: {}", document.len());
        let ten = (0..10).map(|_| told(shop.post(path, kind, document.clone())));
        for response in join_all(ten).await {
            // Documents within the limit are then refused for their contents.
            let is_too_much = response.text().contains("more than 50000 nodes");
            assert!(is_too_much != is_read, "{path} {}: {}", document.len(), response.text());
            assert!(response.text().contains("invalid_"), "{path}: {}", response.text());
        }
    }
    let grown = shop.server.process.peak_bytes().saturating_sub(before);
    assert!(grown < TREES_MAX_BYTES, "{grown} bytes");
}

#[test]
fn a_client_that_is_refused_while_it_writes_reads_the_refusal_and_goes_on_with_the_connection() {
    let shop = Shop::open();
    let server = shop.server.process.url().trim_start_matches("http://");
    let key = format!("authorization: Bearer {}\r\n", shop.key);
    for (line, headers, length, status) in [
        ("POST /v1/messages", String::new(), 900_000, "401"),
        ("POST /v1/messages", format!("{key}content-type: text/plain\r\n"), 900_000, "415"),
        ("POST /v1/messages", format!("{key}content-type: application/json\r\n"), 3 * MIB, "413"),
        ("PUT /v1/messages", key.clone(), 900_000, "405"),
        ("POST /nowhere", key.clone(), 900_000, "404"),
        ("POST /v1/devices/import", "content-type: text/csv\r\n".to_owned(), 900_000, "401"),
    ] {
        let mut stream = TcpStream::connect(server).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let head = format!("{line} HTTP/1.1\r\nhost: shop\r\n{headers}content-length: {length}\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        // The server has refused the request when the client writes its body.
        stream.peek(&mut [0]).unwrap();
        stream.write_all(&vec![b' '; length]).unwrap_or_else(|error| panic!("{line} {status}: {error}"));
        stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: shop\r\n\r\n").unwrap();
        let mut replies = BufReader::new(stream);
        assert_eq!(next_status(&mut replies), status, "{line}");
        assert_eq!(next_status(&mut replies), "200", "{line}");
    }
}

/// Reads the next reply from a connection; returns its status.
fn next_status(replies: &mut BufReader<TcpStream>) -> String {
    let lines: Vec<String> =
        replies.lines().map(Result::unwrap).take_while(|line| !line.is_empty()).collect();
    let length = lines.iter().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    replies.read_exact(&mut body).unwrap();
    lines[0].split(' ').nth(1).unwrap().to_owned()
}

#[tokio::test]
async fn an_import_is_unpacked_while_it_comes() {
    let shop = Shop::open();
    let line = |at| format!("{{\"platform\":\"android\",\"provider\":\"null\",\"token\":\"token-{at}\"}}\n");
    let lines: String = (0..5_000).map(line).collect();
    let request = shop.post("/v1/devices/import", "application/x-ndjson", gzip(lines.as_bytes()).await);
    let response = told(request.header("content-encoding", "gzip")).await;
    assert_eq!(
        (&response.json()["created"], &response.json()["failed"]),
        (&json!(5_000), &json!(0)),
        "{response:?}"
    );
}

#[tokio::test]
async fn documents_and_records_that_would_do_harm_are_refused() {
    let shop = Shop::open();
    let dtd = "<!DOCTYPE d [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;\">]>";
    let file = "<!DOCTYPE d [<!ENTITY f SYSTEM \"file:///etc/passwd\">]>";
    let inside = |text: &str| format!("<RegisterDevice><token>{text}</token></RegisterDevice>");
    let wide: String = (0..5_000).map(|at| format!(" a{at}=\"\"")).collect();
    let documents = [
        format!("{dtd}{}", inside("&b;")),
        format!("{file}{}", inside("&f;")),
        inside("&unknown;"),
        "<a>".repeat(50_000),
        format!("<RegisterDevice{wide}/>"),
        format!("<RegisterDevice a=\"{}\"/>", "x".repeat(MIB / 2)),
        "<Other/>".to_owned(),
        String::new(),
    ];
    for document in documents {
        let response = told(shop.post("/v1/devices", XML, document.clone())).await;
        let shown: String = document.chars().take(60).collect();
        assert!(matches!(response.status.as_u16(), 400 | 413 | 422), "{shown}: {response:?}");
    }
    let records: [&[u8]; 5] = [
        &[0x0b; 50_000],
        &[0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f],
        &[0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f],
        &[0xff; 64],
        &[0x0a, 0x05, b'a'],
    ];
    for record in records {
        let response = told(shop.post("/v1/devices", PROTOBUF, record)).await;
        assert_eq!(response.status, StatusCode::BAD_REQUEST, "{record:?}: {response:?}");
    }
    assert_eq!(told(shop.ask(Method::GET, "/v1/devices")).await.json()["devices"], json!([]));
}
