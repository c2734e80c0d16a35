//! Stories of callers over the raw socket.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::json;
use stentor_wire::soap::{self, Envelope, SoapBody};
use stentor_wire::xml::dom::Element;
use stentor_wire::{DocumentLimits, xmlrpc};
use tokio::io::AsyncWriteExt;

use super::{client, connect, of, refusal, said_hello, socket_server};
use crate::harness::Reading;

#[tokio::test]
async fn a_device_is_registered_and_reached_and_the_ledger_is_read() {
    let server = socket_server(|_| {}).await;
    let tenant = server.sender().await;
    let mut client = of(&server, &tenant).await;
    assert_eq!(client.greeting["stentor"], 1);
    assert_eq!(client.greeting["limits"]["frame_max_bytes"], 1_048_576);
    let device = json!({"platform": "android", "provider": "null", "token": "a-phone", "topics": ["news"]});
    assert_eq!(client.done("devices.register", device).await["created"], true);
    let message = json!({"target": {"topic": "news"}, "data": {"k": "v"}, "ttl_seconds": 60});
    let sent = client.done("messages.send", message).await;
    let id = sent["accepted"]["id"].clone();
    let ledger = client.done("messages.ledger", json!({"message": id})).await;
    assert_eq!(ledger["balanced"], true, "{ledger}");
    let lines = "{\"platform\":\"android\",\"token\":\"another\"}\n";
    assert_eq!(
        client.done("devices.import", json!({"format": "ndjson", "lines": lines})).await["created"],
        1
    );
    let by_number = json!({"id": 7, "operation": 33});
    client.write(by_number.to_string().as_bytes()).await;
    assert!(client.reply().await["id"] == 7);
}

#[tokio::test]
async fn a_message_is_recognised_when_it_is_repeated_through_rest_and_back() {
    let server = socket_server(|_| {}).await;
    let tenant = server.sender().await;
    let mut client = of(&server, &tenant).await;
    let body = json!({"target": "everyone", "data": {"k": "v"}});
    let request = json!({"id": 1, "operation": "messages.send", "record": body, "idempotency_key": "same"});
    client.write(request.to_string().as_bytes()).await;
    let first = client.reply().await["reply"].clone();
    assert_eq!(first["replayed"], false);
    let rest = server.send(&tenant, Method::POST, "/v1/messages").header("idempotency-key", "same");
    let rest = rest.json(&body).read().await;
    assert_eq!(rest.body["id"], first["accepted"]["id"], "{rest:?}");
    let mut inside = body.clone();
    inside["idempotency_key"] = json!("same");
    let again = client.done("messages.send", inside).await;
    assert_eq!((&again["replayed"], &again["accepted"]["id"]), (&json!(true), &rest.body["id"]));
    let other = json!({"target": "everyone", "data": {"k": "w"}, "idempotency_key": "same"});
    assert_eq!(client.refused("messages.send", other).await.0, "idempotency_key_reused");
}

#[tokio::test]
async fn a_wrong_hello_is_refused_and_closed() {
    let server = socket_server(|_| {}).await;
    let tenant = server.tenant().await;
    let key = &tenant.key;
    for (hello, code) in [
        (json!({"stentor": 1, "key": "sk_wrong"}), "unauthorized"),
        (json!({"stentor": 2, "key": key}), "invalid_field"),
        (json!({"stentor": 1, "key": key, "encoding": "morse"}), "invalid_field"),
        (json!({"stentor": 1, "key": key, "app": "mine"}), "not_found"),
        (json!({"stentor": 1}), "invalid_field"),
    ] {
        let mut client = said_hello(connect(&server).await, &hello).await;
        assert_eq!(refusal(&client.greeting).0, code, "{hello}");
        assert_eq!(client.frame().await, None, "closed");
    }
    let mut speaks_http = connect(&server).await;
    speaks_http.write_all(b"GET / HTTP/1.1\r\n\r\n").await.expect("written");
    let mut client = super::Client { stream: speaks_http, greeting: json!(null), next: 1 };
    assert_eq!(client.ended().await, "payload_too_large");
}

#[tokio::test]
async fn refusals_have_the_code_that_rest_gives_them() {
    let server = socket_server(|_| {}).await;
    let (tenant, other) = (server.tenant().await, server.tenant().await);
    let device = server.device(&other, "of-another").await;
    let mut client = of(&server, &tenant).await;
    let field = |name: &str| ("invalid_field".to_owned(), Some(name.to_owned()));
    let bad = json!({"platform": "vms", "token": "t"});
    assert_eq!(client.refused("devices.register", bad).await, field("platform"));
    let unknown = json!({"platform": "android", "token": "t", "tokn": 1});
    assert_eq!(client.refused("devices.register", unknown).await, field("tokn"));
    assert_eq!(client.refused("devices.show", json!({})).await, field("device"));
    assert_eq!(client.refused("devices.show", json!({"device": device})).await.0, "not_found");
    let of_other = json!({"app": other.id});
    assert_eq!(client.refused("devices.list", of_other).await.0, "not_found");
    assert_eq!(client.refused("apps.create_app", json!({"name": "a"})).await.0, "forbidden");
    assert_eq!(client.refused("no.such", json!({})).await.0, "not_found");
    assert_eq!(client.refused("topics.list", json!(5)).await, field("record"));
    client.write(br#"{"id":3,"operation":"topics.list","record":{"after":"a","after":"b"}}"#).await;
    assert_eq!(refusal(&client.reply().await), field("after"));
    client.write(br#"{"id":9,"operation":4711}"#).await;
    let unknown_number = client.reply().await;
    assert_eq!((unknown_number["id"].as_u64(), refusal(&unknown_number)), (Some(9), field("operation")));
    client.write(br#"{"id":4,"operation":"topics.list","idempotency_key":"with space"}"#).await;
    assert_eq!(refusal(&client.reply().await).0, "invalid_field");
    // The connection goes on.
    client.done("topics.list", json!({})).await;
}

#[tokio::test]
async fn the_operator_names_the_app_in_the_hello_or_in_the_record() {
    let server = socket_server(|_| {}).await;
    let (tenant, other) = (server.tenant().await, server.tenant().await);
    server.device(&tenant, "a-phone").await;
    let hello = json!({"stentor": 1, "key": server.root, "app": tenant.id});
    let mut named = said_hello(connect(&server).await, &hello).await;
    let count = |list: &serde_json::Value| list["devices"].as_array().map(Vec::len);
    assert_eq!(count(&named.done("devices.list", json!({})).await), Some(1));
    assert_eq!(count(&named.done("devices.list", json!({"app": other.id})).await), Some(0));
    let mut unnamed = client(&server, &server.root).await;
    assert_eq!(unnamed.refused("devices.list", json!({})).await.0, "invalid_request");
    assert!(unnamed.done("apps.list_apps", json!({})).await["apps"].is_array());
}

#[tokio::test]
async fn what_is_changed_over_it_is_in_the_audit_trail_with_the_address() {
    let server = socket_server(|_| {}).await;
    let mut client = client(&server, &server.root).await;
    client.done("apps.create_app", json!({"name": "by socket"})).await;
    let trail = client.done("audit.list", json!({})).await;
    let entry = &trail["entries"][0];
    assert_eq!(entry["address"], "127.0.0.1", "{trail}");
    let connection = client.greeting["connection"].as_str().expect("a name");
    assert!(entry.to_string().contains(connection), "{entry}");
}

#[tokio::test]
async fn a_removed_key_is_refused_on_a_connection_that_is_open() {
    let server = socket_server(|_| {}).await;
    let tenant = server.tenant().await;
    let mut operator = client(&server, &server.root).await;
    let made = json!({"app": tenant.id, "name": "k", "scopes": ["send"]});
    let made = operator.done("apps.create_key", made).await;
    let mut client = client(&server, made["secret"].as_str().expect("a secret")).await;
    client.done("messages.list", json!({})).await;
    let id = made["id"].clone();
    operator.done("apps.delete_key", json!({"app": tenant.id, "key": id})).await;
    assert_eq!(client.refused("messages.list", json!({})).await.0, "unauthorized");
}

#[tokio::test]
async fn a_thousand_requests_at_once_are_all_answered_once() {
    let server = socket_server(|_| {}).await;
    let tenant = server.tenant().await;
    let mut client = of(&server, &tenant).await;
    let mut all = Vec::new();
    for id in 1..=1_000 {
        let record = json!({"external_id": format!("person-{id}")});
        let request = json!({"id": 5_000 - id, "operation": "users.put", "record": record});
        all.extend(stentor_wire::frame::write(request.to_string().as_bytes()).expect("a frame"));
    }
    client.stream.write_all(&all).await.expect("written");
    let mut answered = BTreeSet::new();
    for _ in 0..1_000 {
        let reply = client.reply().await;
        let id = reply["id"].as_u64().expect("a number");
        assert_eq!(reply["reply"]["external_id"], format!("person-{}", 5_000 - id), "{reply}");
        assert!(answered.insert(id));
    }
    assert_eq!((answered.first(), answered.last()), (Some(&4_000), Some(&4_999)));
}

#[tokio::test]
async fn protocol_buffers_say_the_same() {
    use stentor_server::face::record::protobuf::Schema;
    use stentor_wire::protobuf::fields::{put_field, put_number, read_delimited, read_key, read_varint};

    let server = socket_server(|_| {}).await;
    let tenant = server.tenant().await;
    let hello = json!({"stentor": 1, "key": tenant.key, "encoding": "protobuf"});
    let mut client = said_hello(connect(&server).await, &hello).await;
    assert_eq!(client.greeting["encoding"], "protobuf");
    let device = json!({"platform": "android", "token": "a-phone", "topics": ["news"]});
    let device = device.as_object().expect("an object").clone();
    let mut request = Vec::new();
    put_number(1, 77, &mut request);
    put_field(2, b"devices.register", &mut request);
    let record = Schema::get().write("RegisterDeviceRequest", &device).expect("written");
    put_field(4, &record, &mut request);
    client.write(&request).await;
    let reply = client.frame().await.expect("a reply");
    let mut rest = &reply[..];
    assert_eq!((read_key(&mut rest).expect("a key").0, read_varint(&mut rest)), (1, Ok(77)));
    assert_eq!(read_key(&mut rest).expect("a key").0, 2, "a reply, no error");
    let record = read_delimited(&mut rest).expect("a record");
    let limits = DocumentLimits::default();
    let registered = Schema::get().read("Registered", record, &limits).expect("a reply");
    let devices = server.get(&tenant, "/v1/devices").await;
    assert_eq!((&registered["created"], &registered["id"]), (&json!(true), &devices["devices"][0]["id"]));
    // A request that cannot be parsed ends the connection; the last frame has the same encoding.
    client.write(&[0x0b]).await;
    let last = client.frame().await.expect("the last frame");
    assert_eq!(last[..2], [0x08, 0], "the number zero");
    assert!(last.windows(15).any(|part| part == b"invalid_request"));
    assert_eq!(client.frame().await, None);
}

#[tokio::test]
async fn documents_of_xmlrpc_travel_in_frames() {
    let server = socket_server(|_| {}).await;
    let tenant = server.sender().await;
    let hello = json!({"stentor": 1, "key": tenant.key, "encoding": "xmlrpc"});
    let mut client = said_hello(connect(&server).await, &hello).await;
    assert_eq!(client.greeting["limits"]["requests_in_flight_max"], 1);
    let call = |method: &str, name: &str| {
        let record = stentor_wire::Value::Record(vec![("external_id".into(), name.into())]);
        let call = xmlrpc::Call { method: method.into(), params: vec![record] };
        xmlrpc::write_call(&call).expect("a document")
    };
    // Two at once: they are answered in their order.
    client.write(&call("users.put", "anna")).await;
    client.write(&call("users.show", "nobody")).await;
    let read = |frame: Option<Vec<u8>>| {
        xmlrpc::read_response(&frame.expect("a document"), &DocumentLimits::default()).expect("a response")
    };
    let put = read(client.frame().await).expect("no fault");
    assert_eq!(put.get("external_id"), Some(&"anna".into()));
    assert_eq!(read(client.frame().await).expect_err("a fault").code, 8);
    client.write(b"<methodCall>").await;
    assert_eq!(read(client.frame().await).expect_err("a fault").code, 1);
}

#[tokio::test]
async fn envelopes_of_soap_travel_in_frames_and_are_answered_in_their_version() {
    let server = socket_server(|_| {}).await;
    let tenant = server.sender().await;
    let hello = json!({"stentor": 1, "key": tenant.key, "encoding": "soap"});
    let mut client = said_hello(connect(&server).await, &hello).await;
    assert_eq!(client.greeting["limits"]["requests_in_flight_max"], 1);
    for version in [soap::Version::V11, soap::Version::V12] {
        let called = |name: &str| {
            let record =
                Element::of(NAMESPACE, name).with(Element::of(NAMESPACE, "external_id").with_text("anna"));
            soap::write(&Envelope::around(version, vec![record])).expect("an envelope")
        };
        // Two at once: they are answered in their order.
        client.write(&called("PutUser")).await;
        client.write(&called("FlyUser")).await;
        let done = envelope(client.frame().await);
        assert_eq!((done.version, body_name(&done).as_deref()), (version, Some("PutUserResponse")));
        assert_eq!(refused_code(envelope(client.frame().await), version), "not_found");
    }
    client.write(b"<Envelope>").await;
    assert_eq!(refused_code(envelope(client.frame().await), soap::Version::V11), "invalid_request");
}

const NAMESPACE: &str = stentor_server::face::record::xml::NAMESPACE;

fn envelope(frame: Option<Vec<u8>>) -> Envelope {
    soap::read(&frame.expect("an envelope"), &DocumentLimits::default(), &[]).expect("an envelope")
}

fn body_name(envelope: &Envelope) -> Option<String> {
    match &envelope.body {
        SoapBody::Elements(elements) => elements.first().map(|element| element.name.clone()),
        SoapBody::Fault(_) => None,
    }
}

/// Returns the error code in a fault of this version.
fn refused_code(envelope: Envelope, version: soap::Version) -> String {
    let SoapBody::Fault(fault) = &envelope.body else { panic!("a fault: {envelope:?}") };
    assert_eq!(envelope.version, version);
    fault.reason.split(':').next().unwrap_or_default().to_owned()
}

/// The example, as its page has it.
const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/socket_client.py");

/// Runs the example; returns its success and its output, or `None` without Python.
async fn example(arguments: Vec<String>) -> Option<(bool, serde_json::Value)> {
    let mut command = std::process::Command::new("python3");
    command.arg(EXAMPLE).args(arguments);
    let ran = tokio::task::spawn_blocking(move || command.output()).await.expect("it ran");
    let Ok(ran) = ran else {
        let required = std::env::var("STENTOR_TEST_REQUIRE").unwrap_or_default();
        assert!(!required.contains("judges"), "there is no python3");
        let _ = std::io::Write::write_all(&mut std::io::stderr(), b"skipped: there is no python3\n");
        return None;
    };
    let printed = serde_json::from_slice(&ran.stdout);
    Some((ran.status.success(), printed.unwrap_or_else(|_| panic!("{ran:?}"))))
}

#[tokio::test]
async fn the_example_in_python_registers_and_sends() {
    let server = socket_server(|_| {}).await;
    let tenant = server.sender().await;
    let address = server.socket.expect("a raw socket");
    let ask = |operation: &str, record: &str| {
        let words = [&address.ip().to_string(), &address.port().to_string(), &tenant.key, operation, record];
        example(words.map(str::to_owned).into())
    };
    let Some((done, device)) = ask("devices.register", r#"{"platform":"android","token":"a-phone"}"#).await
    else {
        return;
    };
    assert!(done && device["reply"]["created"] == true, "{device}");
    let sent = ask("messages.send", r#"{"target":"everyone","data":{"k":"v"}}"#).await.expect("Python");
    assert!(sent.0 && sent.1["reply"]["accepted"]["id"].is_string(), "{sent:?}");
    let refused = ask("devices.show", r#"{"device":"x"}"#).await.expect("Python");
    assert_eq!((refused.0, refusal(&refused.1).0), (false, "not_found".to_owned()));
}

#[tokio::test]
async fn the_example_in_python_speaks_over_tls_under_the_authority_that_it_is_given() {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    let other = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    let folder = tempfile::tempdir().expect("a folder");
    let (ca, strange) = (folder.path().join("ca.pem"), folder.path().join("strange.pem"));
    std::fs::write(&ca, made.cert.pem()).expect("written");
    std::fs::write(&strange, other.cert.pem()).expect("written");
    let server = socket_server(|config| {
        config.api.tls_cert_file.clone_from(&ca);
        config.api.tls_key_file = config.data_dir.join("key.pem");
        std::fs::write(&config.api.tls_key_file, made.signing_key.serialize_pem()).expect("written");
    })
    .await;
    let port = server.socket.expect("a raw socket").port().to_string();
    let words = |ca: &std::path::Path| {
        let ca = ca.to_str().expect("a path");
        ["--ca", ca, "localhost", &port, &server.root, "apps.list_apps"].map(str::to_owned).to_vec()
    };
    let Some((done, apps)) = example(words(&ca)).await else { return };
    assert!(done && apps["reply"]["apps"].is_array(), "{apps}");
    let mut refused = tokio::process::Command::new("python3");
    let refused = refused.arg(EXAMPLE).args(words(&strange)).output().await.expect("it ran");
    let errors = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && errors.contains("CERTIFICATE_VERIFY_FAILED"), "{errors}");
}
