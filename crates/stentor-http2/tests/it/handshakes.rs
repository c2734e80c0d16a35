//! Peers that stop during the handshake.

use std::time::Duration;

use stentor_http2::{Client, Fault, Limits};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

use crate::frames::{Peer, listen};
use crate::server::Tls;
use crate::support::{batch, client, fault, quick, statuses, within};

const PATIENCE: Duration = Duration::from_millis(200);

fn impatient() -> Limits {
    Limits { connect_timeout_ms: PATIENCE.as_millis() as u64, ..quick() }
}

/// Checks that nothing is sent, and that the fault is reported soon after the timeout.
async fn gives_up_in_time(client: Client) {
    let begun = Instant::now();
    let replies = within(20, client.send(batch(2))).await;
    let took = begun.elapsed();
    replies.iter().for_each(|reply| assert_eq!(fault(reply), &Fault::ConnectTimeout));
    assert_eq!(statuses(&replies), [0, 0]);
    assert!((PATIENCE..PATIENCE + Duration::from_secs(2)).contains(&took), "{took:?}");
}

/// Forwards the clients' bytes, and at most `most_bytes` of the server's.
async fn pass_on(listener: TcpListener, to: u16, most_bytes: usize) {
    let mut held = Vec::new();
    while let Ok((mut client, _)) = listener.accept().await {
        let mut server = TcpStream::connect(("127.0.0.1", to)).await.expect("it listens");
        let mut hello = vec![0; 16_384];
        let count = client.read(&mut hello).await.expect("a hello");
        server.write_all(&hello[..count]).await.expect("still there");
        server.read_exact(&mut hello[..most_bytes]).await.expect("an answer");
        client.write_all(&hello[..most_bytes]).await.expect("still there");
        held.push((client, server));
    }
}

#[tokio::test]
async fn a_peer_that_accepts_and_never_begins_with_tls_is_given_up_in_time() {
    let (_listener, port) = listen().await;
    gives_up_in_time(Tls::new(&["h2"]).client(port, impatient())).await;
}

#[tokio::test]
async fn a_peer_that_stalls_in_the_tls_handshake_is_given_up_in_time() {
    for most_bytes in [3, 100, 600] {
        let ((behind, to), (listener, port)) = (listen().await, listen().await);
        let tls = Tls::new(&["h2"]);
        tls.serve(behind);
        tokio::spawn(pass_on(listener, to, most_bytes));
        gives_up_in_time(tls.client(port, impatient())).await;
    }
}

#[tokio::test]
async fn a_peer_that_agrees_on_keys_and_never_sends_settings_is_given_up_in_time() {
    let (listener, port) = listen().await;
    let tls = Tls::new(&["h2"]);
    tls.hold(listener);
    gives_up_in_time(tls.client(port, impatient())).await;
}

#[tokio::test]
async fn a_second_connection_that_is_never_greeted_holds_nothing_up() {
    let (listener, port) = listen().await;
    let client = client(port, Limits { connect_timeout_ms: 60_000, ..quick() });
    let server = async {
        let mut first = Peer::accept(&listener, 1).await;
        let one = first.requests(1).await;
        let mute = Peer::accept_mute(&listener).await;
        first.answer(one[0].0).await;
        for _ in 1..10 {
            let one = first.requests(1).await;
            first.answer(one[0].0).await;
        }
        (first, mute)
    };
    let (replies, _peers) = within(20, async { tokio::join!(client.send(batch(10)), server) }).await;
    assert_eq!(statuses(&replies), [200; 10]);
}
