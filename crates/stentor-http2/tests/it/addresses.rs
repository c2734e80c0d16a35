//! Connections go to an address that was checked, even if the name has changed its meaning since.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use stentor_http2::{Addresses, Client, Endpoint, Fault, Limits};
use tokio::net::TcpListener;

use crate::server;
use crate::support::{batch, fault, quick, statuses, within};

const ALLOWED: Ipv4Addr = Ipv4Addr::LOCALHOST;
const REFUSED: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// A name that resolves differently at each look-up; its last result stays.
#[derive(Debug)]
struct Fickle {
    meanings: Mutex<VecDeque<Vec<Ipv4Addr>>>,
    look_ups: AtomicUsize,
}

impl Fickle {
    fn new(meanings: &[&[Ipv4Addr]]) -> Arc<Self> {
        let meanings = meanings.iter().map(|meaning| meaning.to_vec()).collect();
        Arc::new(Self { meanings: Mutex::new(meanings), look_ups: AtomicUsize::new(0) })
    }
}

impl Addresses for Fickle {
    fn look_up(&self, _host: &str, port: u16) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
        self.look_ups.fetch_add(1, Ordering::Relaxed);
        let mut meanings = self.meanings.lock().expect("no panic");
        let meaning = if meanings.len() > 1 { meanings.pop_front() } else { meanings.front().cloned() };
        let addresses = meaning.unwrap_or_default().into_iter().map(|ip| (ip, port).into()).collect();
        Box::pin(async { Ok(addresses) })
    }

    fn check(&self, address: SocketAddr) -> Result<(), String> {
        if address.ip() == REFUSED { Err(format!("{} is refused", address.ip())) } else { Ok(()) }
    }
}

/// The system's resolver, with this machine's addresses refused.
#[derive(Debug)]
struct Abroad;

impl Addresses for Abroad {
    fn check(&self, address: SocketAddr) -> Result<(), String> {
        match address.ip().to_canonical() {
            IpAddr::V4(v4) if v4.is_loopback() || v4.is_unspecified() => Err("this machine".into()),
            IpAddr::V6(v6) if v6.is_loopback() || v6.is_unspecified() => Err("this machine".into()),
            _ => Ok(()),
        }
    }
}

fn client(host: &str, port: u16, addresses: Arc<dyn Addresses>) -> Client {
    let endpoint = Endpoint { cleartext: true, addresses, ..Endpoint::new(host, port) };
    // Each request needs a connection of its own.
    let limits = Limits { max_requests_per_connection: 1, ..quick() };
    Client::new(&endpoint, limits).expect("usable endpoint")
}

/// Listens beside a server, at the refused address.
async fn trap(port: u16) -> TcpListener {
    TcpListener::bind((REFUSED, port)).await.expect("all of 127/8 is this machine's")
}

/// Returns true if a client has connected.
async fn was_sprung(trap: &TcpListener) -> bool {
    // A pending connection waits to be accepted.
    tokio::time::timeout(std::time::Duration::from_millis(50), trap.accept()).await.is_ok()
}

#[tokio::test]
async fn r17_a_name_that_is_bound_anew_is_checked_at_each_connection() {
    let port = server::start(server::echo).await;
    let trap = trap(port).await;
    let fickle = Fickle::new(&[&[ALLOWED], &[REFUSED], &[ALLOWED], &[REFUSED]]);
    let client = client("push.example", port, fickle.clone());
    let mut seen = Vec::new();
    for _ in 0..4 {
        let replies = within(20, client.send(batch(1))).await;
        if seen.len() % 2 == 1 {
            assert!(matches!(fault(&replies[0]), Fault::AddressRefused(_)), "{replies:?}");
        }
        seen.extend(statuses(&replies));
    }
    assert_eq!(seen, [200, 0, 200, 0]);
    assert_eq!(fickle.look_ups.load(Ordering::Relaxed), 4, "no connection looks a name up twice");
    assert!(!was_sprung(&trap).await);
}

#[tokio::test]
async fn r17_of_a_names_addresses_only_the_permitted_ones_are_used() {
    let port = server::start(server::echo).await;
    let trap = trap(port).await;
    for meaning in [[REFUSED, ALLOWED], [ALLOWED, REFUSED]] {
        let client = client("push.example", port, Fickle::new(&[&meaning]));
        assert_eq!(statuses(&within(20, client.send(batch(5))).await), [200; 5]);
    }
    assert!(!was_sprung(&trap).await);
}

#[tokio::test]
async fn r17_no_spelling_of_an_address_is_overlooked() {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).await.expect("a port");
    let port = listener.local_addr().expect("bound").port();
    for host in [
        "127.0.0.1",
        "127.1",
        "127.0.1",
        "0x7f.1",
        "0x7f000001",
        "2130706433",
        "017700000001",
        "0177.0.0.1",
        "127.255.0.1",
        "0",
        "0.0.0.0",
        "::1",
        "::",
        "::ffff:127.0.0.1",
        "::ffff:7f00:1",
        "localhost",
        "localhost.",
        "LOCALHOST",
    ] {
        let replies = within(30, client(host, port, Arc::new(Abroad)).send(batch(1))).await;
        // Not every resolver understands every notation.
        let fault = fault(&replies[0]);
        assert!(matches!(fault, Fault::AddressRefused(_) | Fault::Connect(_)), "{host}: {fault}");
    }
    assert!(!was_sprung(&listener).await);
}

#[tokio::test]
async fn r17_a_peer_that_sends_on_is_not_followed() {
    let elsewhere = TcpListener::bind((ALLOWED, 0)).await.expect("a port");
    let to = format!("http://{}/", elsewhere.local_addr().expect("bound"));
    let port = server::start(move |_, _, mut respond| {
        let answer = http::Response::builder().status(307).header("location", &to).body(());
        respond.send_response(answer.expect("a response"), true).expect("the client waits");
    })
    .await;
    let client = client("127.0.0.1", port, Fickle::new(&[&[ALLOWED]]));
    assert_eq!(statuses(&within(20, client.send(batch(2))).await), [307; 2]);
    assert!(!was_sprung(&elsewhere).await);
}
