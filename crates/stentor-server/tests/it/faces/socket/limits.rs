//! Limits of one connection, and its end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::pki_types::ServerName;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{Client, PATIENCE, client, connect, of, said_hello, socket_server};
use crate::limits::{metric, until};

#[tokio::test]
async fn what_cannot_be_matched_to_a_request_ends_the_connection_behind_what_was_taken() {
    let server = socket_server(|config| config.api.large_body_max_bytes = 200_000).await;
    let tenant = server.tenant().await;
    let broken: [(&[u8], &str); 4] = [
        (b"{", "invalid_request"),
        (b"[]", "invalid_request"),
        (br#"{"operation":"topics.list"}"#, "invalid_field"),
        (br#"{"id":0,"operation":"topics.list"}"#, "invalid_field"),
    ];
    for (frame, code) in broken {
        let mut client = of(&server, &tenant).await;
        let id = client.send("topics.list", json!({})).await;
        client.write(frame).await;
        assert_eq!(client.reply().await["id"], id);
        assert_eq!(client.ended().await, code, "{}", String::from_utf8_lossy(frame));
    }
    let mut client = of(&server, &tenant).await;
    assert_eq!(client.greeting["limits"]["frame_max_bytes"], 200_000);
    client.stream.write_all(&200_001_u32.to_be_bytes()).await.expect("written");
    client.stream.write_all(&[b' '; 100_000]).await.expect("written");
    assert_eq!(client.ended().await, "payload_too_large");
    let mut client = of(&server, &tenant).await;
    let padding = "x".repeat(199_900);
    let largest =
        format!("{{\"id\":1,\"operation\":\"users.show\",\"record\":{{\"external_id\":\"{padding}\"}}}}");
    client.write(largest.as_bytes()).await;
    assert_eq!(super::refusal(&client.reply().await).0, "invalid_field");
}

#[tokio::test]
async fn whoever_says_no_hello_or_asks_nothing_is_closed() {
    let server = socket_server(|config| {
        config.api.header_timeout_seconds = 1;
        config.api.connection_idle_timeout_seconds = 2;
    })
    .await;
    let tenant = server.tenant().await;
    let mut silent = Client { stream: connect(&server).await, greeting: json!(null), next: 1 };
    let mut slow = Client { stream: connect(&server).await, greeting: json!(null), next: 1 };
    slow.stream.write_all(&[0, 0]).await.expect("written");
    assert_eq!(silent.frame().await, None);
    assert_eq!(slow.frame().await, None);
    let mut idle = of(&server, &tenant).await;
    assert_eq!(idle.greeting["limits"]["idle_timeout_seconds"], 2);
    idle.done("topics.list", json!({})).await;
    assert_eq!(idle.ended().await, "request_timeout");
    until(&server, "stentor_socket_connections_open", 0).await;
}

#[tokio::test]
async fn a_frame_that_comes_too_slowly_ends_the_connection() {
    let server = socket_server(|config| config.api.body_timeout_seconds = 1).await;
    let tenant = server.tenant().await;
    let mut client = of(&server, &tenant).await;
    let id = client.send("topics.list", json!({})).await;
    client.stream.write_all(&[0, 0, 1, 0, b'{']).await.expect("written");
    assert_eq!(client.reply().await["id"], id, "what was whole is answered");
    assert_eq!(client.ended().await, "request_timeout");
    until(&server, "stentor_request_bodies_bytes", 0).await;
}

#[tokio::test]
async fn whoever_takes_no_replies_holds_a_bounded_number_of_requests_and_is_left() {
    let server = socket_server(|config| config.api.body_timeout_seconds = 1).await;
    let mut client = client(&server, &server.root).await;
    let request = json!({"id": 1, "operation": "status.status"}).to_string();
    let frame = stentor_wire::frame::write(request.as_bytes()).expect("a frame");
    let many = frame.repeat(1_000);
    let began = Instant::now();
    // Reads nothing, and writes until the server closes the connection.
    while client.stream.write_all(&many).await.is_ok() {
        assert!(began.elapsed() < PATIENCE, "never left");
    }
    until(&server, "stentor_socket_connections_open", 0).await;
    until(&server, "stentor_requests_at_work", 0).await;
}

#[tokio::test]
async fn what_is_cut_in_the_middle_leaves_nothing_behind() {
    let server = socket_server(|_| {}).await;
    let tenant = server.tenant().await;
    for bytes in [&[][..], &[0, 0], &[0, 0, 1, 0], &[0, 0, 1, 0, b'{', b'"']] {
        let mut client = of(&server, &tenant).await;
        client.stream.write_all(bytes).await.expect("written");
    }
    let mut half_closed = of(&server, &tenant).await;
    let id = half_closed.send("topics.list", json!({})).await;
    half_closed.stream.shutdown().await.expect("half closed");
    assert_eq!(half_closed.reply().await["id"], id, "what was taken is answered");
    assert_eq!(half_closed.frame().await, None);
    until(&server, "stentor_socket_connections_open", 0).await;
    until(&server, "stentor_request_bodies_bytes", 0).await;
    assert_eq!(metric(&server, "stentor_socket_requests_total").await, 1);
}

#[tokio::test]
async fn its_connections_are_counted_with_those_of_the_api() {
    let server = socket_server(|config| config.api.connections_per_address_max_count = 3).await;
    let tenant = server.tenant().await;
    let mut open = Vec::new();
    for _ in 0..6 {
        let mut client = of(&server, &tenant).await;
        client.done("topics.list", json!({})).await;
        open.push(client);
    }
    assert!(metric(&server, "stentor_connections_open").await <= 3);
    assert!(metric(&server, "stentor_connections_closed_total{reason=\"made_room\"}").await >= 3);
    assert_eq!(metric(&server, "stentor_socket_requests_total").await, 6);
}

#[tokio::test]
async fn an_app_has_its_share_of_places_and_others_have_theirs() {
    let server = socket_server(|config| {
        config.api.requests_max_count = 2;
        config.api.app_share_percent = 50;
    })
    .await;
    let tenant = server.tenant().await;
    let mut client = of(&server, &tenant).await;
    for _ in 0..200 {
        client.send("topics.list", json!({})).await;
    }
    for _ in 0..200 {
        let reply = client.reply().await;
        if let Some(error) = reply.get("error") {
            assert_eq!(
                (error["code"].as_str(), error["retry_after_seconds"].as_u64()),
                (Some("rate_limited"), Some(1))
            );
        }
    }
    client.done("topics.list", json!({})).await;
}

#[tokio::test]
async fn a_server_that_stops_answers_what_it_has_taken_and_says_so() {
    let server = socket_server(|_| {}).await;
    let tenant = server.tenant().await;
    let (mut idle, mut busy) = (of(&server, &tenant).await, of(&server, &tenant).await);
    let mut sent = Vec::new();
    for number in 0..100 {
        sent.push(busy.send("users.put", json!({"external_id": format!("p{number}")})).await);
    }
    until(&server, "stentor_socket_requests_total", 100).await;
    let stopping = tokio::spawn(server.stop());
    assert_eq!(idle.ended().await, "unavailable");
    for _ in 0..100 {
        let reply = busy.reply().await;
        let id = reply["id"].as_u64().expect("a number");
        assert!(reply.get("reply").is_some(), "{reply}");
        sent.retain(|other| *other != id);
    }
    assert!(sent.is_empty());
    assert_eq!(busy.ended().await, "unavailable");
    let folder = stopping.await.expect("stopped");
    let address = std::fs::read_to_string(folder.path().join("socket.addr")).expect("a file");
    assert!(address.trim().parse::<std::net::SocketAddr>().is_ok());
}

#[tokio::test]
async fn it_is_spoken_over_the_certificate_of_the_api() {
    let names = vec!["localhost".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
    let server = socket_server(|config| {
        config.api.tls_cert_file = config.data_dir.join("cert.pem");
        config.api.tls_key_file = config.data_dir.join("key.pem");
        std::fs::write(&config.api.tls_cert_file, made.cert.pem()).expect("written");
        std::fs::write(&config.api.tls_key_file, made.signing_key.serialize_pem()).expect("written");
    })
    .await;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(made.cert.der().clone()).expect("a certificate");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let name = ServerName::try_from("localhost").expect("a name");
    let stream = connector.connect(name, connect(&server).await).await.expect("greeted");
    let hello = json!({"stentor": 1, "key": server.root});
    let mut client = said_hello(stream, &hello).await;
    assert!(client.done("apps.list_apps", json!({})).await["apps"].is_array());
    let mut plain = connect(&server).await;
    plain.write_all(b"\0\0\0\x02{}").await.expect("written");
    let mut said = Vec::new();
    let _reset_or_alert = tokio::time::timeout(Duration::from_secs(30), plain.read_to_end(&mut said)).await;
    assert!(!said.windows(7).any(|part| part == b"stentor"), "nothing is said in the clear");
}
