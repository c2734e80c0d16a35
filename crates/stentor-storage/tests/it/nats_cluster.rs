//! The queue on three NATS servers; the leader of its stream is killed.

use std::collections::BTreeSet;
use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use stentor_core::chunk::{Lane, Ticket, TrafficClass};
use stentor_core::device::ProviderKind;
use stentor_core::id::{AppId, ChunkId};
use stentor_core::ports::queue::Queue;
use stentor_storage::conformance::scene::at;
use stentor_storage::nats::{NatsQueue, NatsSettings};

use crate::nats_server::{NatsServer, server};

const LANE: Lane = Lane { provider: ProviderKind::Fcm, app: AppId::from_raw(1), class: TrafficClass::Bulk };
const MINUTE: Duration = Duration::from_secs(60);
/// The longest time for an election and all that follows.
const PATIENCE: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_millis(100);
const NAMES: [&str; 3] = ["one", "two", "three"];
const TICKETS_COUNT: u64 = 300;

/// Starts three servers that know each other.
fn cluster() -> Vec<NatsServer> {
    let listeners = NAMES.map(|_| TcpListener::bind(("127.0.0.1", 0)).expect("a port"));
    let addresses: Vec<SocketAddr> =
        listeners.iter().map(|listener| listener.local_addr().expect("an address")).collect();
    drop(listeners);
    let routes: Vec<_> = addresses.iter().map(|address| format!("nats://{address}")).collect();
    let start = |(name, address): (&str, &SocketAddr)| {
        let arguments = [
            format!("--name={name}"),
            "--cluster_name=cluster".to_owned(),
            format!("--cluster=nats://{address}"),
            format!("--routes={}", routes.join(",")),
        ];
        NatsServer::start(name, &arguments).expect("it is installed")
    };
    NAMES.into_iter().zip(&addresses).map(start).collect()
}

/// Returns the name of the server that leads a stream.
async fn leader(servers: &[NatsServer], stream: &str) -> String {
    let client = async_nats::connect(format!("127.0.0.1:{}", servers[0].port())).await.expect("connected");
    let stream = async_nats::jetstream::new(client).get_stream(stream).await.expect("there");
    let cluster = stream.cached_info().cluster.clone().expect("a cluster");
    cluster.leader.expect("a leader")
}

/// Repeats work until it succeeds, as there is no leader for a while.
async fn until_done<T, E: std::fmt::Debug>(work: impl AsyncFn() -> Result<T, E>) -> T {
    let begun = Instant::now();
    loop {
        match work().await {
            Ok(done) => return done,
            Err(error) => assert!(begun.elapsed() < PATIENCE, "{error:?}"),
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_ticket_comes_out_though_the_server_that_leads_is_killed() {
    if server().is_none() {
        return;
    }
    let servers = cluster();
    let all: Vec<_> = servers.iter().map(|server| format!("127.0.0.1:{}", server.port())).collect();
    // Messages in flight from the killed server are redelivered after this time.
    let ack_wait = Duration::from_secs(5);
    let settings = NatsSettings { replicas_count: NAMES.len(), ack_wait, ..NatsSettings::default() };
    let stream = settings.stream.clone();
    let queue = NatsQueue::new(format!("nats://{}", all.join(",")).parse().expect("an address"), settings);
    let ticket = |number| Ticket { chunk: ChunkId::from_raw(number), lane: LANE, due_at: at(0) };
    let tickets: Vec<_> = (1..=TICKETS_COUNT).map(ticket).collect();
    until_done(async || queue.publish(&tickets).await).await;
    let lease = async || queue.lease(LANE, 7, MINUTE, at(1)).await;
    let first = until_done(lease).await;
    let mut seen: BTreeSet<_> = first.iter().map(|lease| lease.ticket.chunk).collect();
    let leader = leader(&servers, &stream).await;
    servers[NAMES.iter().position(|name| *name == leader).expect("one of them")].kill();
    let begun = Instant::now();
    while seen.len() < tickets.len() {
        assert!(begun.elapsed() < PATIENCE, "{} of {} came out", seen.len(), tickets.len());
        let leases = until_done(lease).await;
        seen.extend(leases.iter().map(|lease| lease.ticket.chunk));
        queue.ack(leases).await.expect("heard or not");
    }
}
