//! Limits on the number of connections, and on their idle time.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use reqwest::{Client, ClientBuilder, Method};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::{Read, Reading, Server, server_with};
use crate::limits::{Unfinished, metric, until};

/// The first bytes of an HTTP/2 client: the preface and empty SETTINGS.
const HELLO: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
const PING: &[u8] = b"\0\0\x08\x06\0\0\0\0\0abcdefgh";

/// Opens an HTTP/2 connection and sends no request.
async fn silent(server: &Server) -> TcpStream {
    let address = server.url.strip_prefix("http://").expect("plain").to_owned();
    let mut stream = TcpStream::connect(address).await.expect("connected");
    stream.write_all(HELLO).await.expect("written");
    stream.read_exact(&mut [0; 9]).await.expect("its SETTINGS");
    stream
}

/// Sends pings until the server has closed the connection.
async fn ping_until_closed(mut stream: TcpStream) {
    let mut bytes = [0; 1_024];
    while stream.write_all(PING).await.is_ok() {
        if !matches!(stream.read(&mut bytes).await, Ok(1..)) {
            return;
        }
    }
}

/// Sends a request over a connection of its own.
async fn ask(server: &Server, client: ClientBuilder) -> Result<Read, reqwest::Error> {
    let client = client.no_proxy().pool_max_idle_per_host(0).build().expect("a client");
    let response = client.get(format!("{}/healthz", server.url)).send().await?;
    Ok(Read { status: response.status().as_u16(), headers: Default::default(), body: Default::default() })
}

#[tokio::test]
async fn an_http2_connection_that_asks_for_nothing_is_closed_whatever_pings_it_sends() {
    let server = server_with(|config| config.api.header_timeout_seconds = 1).await;
    let stream = silent(&server).await;
    tokio::time::timeout(Duration::from_secs(60), ping_until_closed(stream)).await.expect("closed");
    assert!(metric(&server, "stentor_connections_closed_total{reason=\"idle\"}").await >= 1);
    until(&server, "stentor_connections_open", 1).await;
}

/// Sends an endless request head byte by byte; returns the time until the server closed the connection.
async fn dribbled(server: &Server, begin: &[u8], more: &[u8]) -> Duration {
    let address = server.url.strip_prefix("http://").expect("plain").to_owned();
    let mut stream = TcpStream::connect(address).await.expect("connected");
    stream.write_all(begin).await.expect("written");
    let (began, mut said) = (Instant::now(), [0; 1_024]);
    for byte in more.iter().cycle() {
        // The pace of sending; the server's data is read during it, and its end noticed.
        let read = tokio::time::timeout(Duration::from_millis(50), stream.read(&mut said)).await;
        let has_ended = matches!(read, Ok(Ok(0) | Err(_)));
        if has_ended || stream.write_all(&[*byte]).await.is_err() {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "it is borne");
    }
    began.elapsed()
}

#[tokio::test]
async fn a_head_that_comes_byte_by_byte_ends_with_the_time_for_heads() {
    let server = server_with(|config| config.api.header_timeout_seconds = 1).await;
    // A header in frames, of which none is the last: a length of one, CONTINUATION, no flag, stream 1, and a byte of it.
    let piece = b"\0\0\x01\x09\0\0\0\0\x01a";
    let begun = [HELLO, b"\0\0\x01\x01\x01\0\0\0\x01\x82"].concat();
    let slow: [(&[u8], &[u8]); 5] = [
        (b"", b"GET /healthz HTTP/1.1\r\n"),
        (b"GET /healthz HTTP/1.1\r\n", b"x-more: a\r\n"),
        (b"GET /healthz HTTP/1.1\r\nx-more: ", b"a"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r", b"\n\0"),
        (&begun, piece),
    ];
    let borne = slow.map(|(begin, more)| dribbled(&server, begin, more));
    for (number, borne) in futures_util::future::join_all(borne).await.into_iter().enumerate() {
        // A farewell of five seconds is part of it where frames are spoken.
        assert!(borne < Duration::from_secs(30), "number {number}: {borne:?}");
    }
    until(&server, "stentor_connections_open", 1).await;
    assert_eq!(ask(&server, Client::builder()).await.expect("an answer").status, 200);
}

#[tokio::test]
async fn an_http2_connection_is_closed_when_nothing_more_is_asked() {
    let server = server_with(|config| config.api.connection_idle_timeout_seconds = 1).await;
    let client = Client::builder().no_proxy().http2_prior_knowledge().build().expect("a client");
    let ask = || client.get(format!("{}/healthz", server.url));
    assert_eq!(ask().read().await.status, 200);
    until(&server, "stentor_connections_closed_total{reason=\"idle\"}", 1).await;
    assert_eq!(ask().read().await.status, 200, "over a new connection");
}

#[tokio::test]
async fn idle_connections_make_room_for_whoever_asks() {
    let server = server_with(|config| config.api.connections_max_count = 4).await;
    let mut idle = Vec::new();
    for _ in 0..8 {
        idle.push(silent(&server).await);
        let began = Instant::now();
        assert_eq!(ask(&server, Client::builder()).await.expect("an answer").status, 200);
        assert!(began.elapsed() < Duration::from_secs(8), "sooner than anything is given up");
    }
    assert!(metric(&server, "stentor_connections_open").await <= 4);
    assert!(metric(&server, "stentor_connections_closed_total{reason=\"made_room\"}").await >= 4);
}

#[tokio::test]
async fn one_address_has_its_number_of_connections_and_others_get_in() {
    let mut server = server_with(|config| {
        config.api.connections_per_address_max_count = 3;
        config.api.body_timeout_seconds = 600;
        config.api.request_timeout_seconds = 600;
    })
    .await;
    let tenant = server.tenant().await;
    let elsewhere = || Client::builder().local_address(IpAddr::from([127, 0, 0, 2]));
    server.client = elsewhere().no_proxy().build().expect("a client");
    let mut held = Vec::new();
    for number in 1..=3 {
        let client = Client::builder().no_proxy().build().expect("a client");
        let request = client.request(Method::POST, format!("{}/v1/devices", server.url));
        let request = request.bearer_auth(&tenant.key).header("content-type", "application/json");
        held.push(Unfinished::begin(request, "{"));
        until(&server, "stentor_requests_at_work", number).await;
    }
    assert!(ask(&server, Client::builder()).await.is_err(), "the fourth is closed");
    assert_eq!(metric(&server, "stentor_connections_closed_total{reason=\"address_limit\"}").await, 1);
    assert_eq!(ask(&server, elsewhere()).await.expect("an answer").status, 200);
    assert_eq!(held.pop().expect("held").end().await.refusal().1, "invalid_request");
    until(&server, "stentor_requests_at_work", 2).await;
    assert_eq!(ask(&server, Client::builder()).await.expect("the place is free").status, 200);
}
