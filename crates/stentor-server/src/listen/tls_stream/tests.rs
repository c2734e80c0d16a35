use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion, version};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio_rustls::TlsConnector;

use super::*;

/// The settings of a server, and a client that trusts it and uses one version.
struct Pair {
    server: Arc<ServerConfig>,
    connector: TlsConnector,
}

impl Pair {
    fn of(version: &'static SupportedProtocolVersion) -> Self {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
        let server = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .expect("a pair");
        let mut roots = RootCertStore::empty();
        roots.add(made.cert.der().clone()).expect("a certificate");
        let client = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[version])
            .expect("a version")
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self { server: Arc::new(server), connector: TlsConnector::from(Arc::new(client)) }
    }

    /// Connects over a pipe with the given capacity in bytes.
    async fn connect(&self, room_bytes: usize) -> (Client, Box<TlsStream<DuplexStream>>) {
        let (near, far) = duplex(room_bytes);
        let name = ServerName::try_from("localhost").expect("a name");
        let (client, server) =
            tokio::join!(self.connector.connect(name, near), TlsStream::accept(self.server.clone(), far));
        (client.expect("greeted"), server.expect("greeted"))
    }
}

type Client = tokio_rustls::client::TlsStream<DuplexStream>;

/// Bytes without repeating sequences.
fn content(count: usize) -> Vec<u8> {
    (0..count).map(|place| (place * 31 + place / 251) as u8).collect()
}

async fn say(stream: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) {
    stream.write_all(bytes).await.expect("written");
    stream.flush().await.expect("written");
}

#[tokio::test]
async fn what_is_said_both_ways_at_once_arrives_whole_in_pieces_of_any_size() {
    // TLS 1.3 ends with tickets, which need room until the client reads.
    for (version, least_bytes) in [(&version::TLS12, 1), (&version::TLS13, 500)] {
        for (room_bytes, count) in [(least_bytes, 300), (700, 50_000), (1 << 20, 300_000)] {
            let (client, server) = Pair::of(version).connect(room_bytes).await;
            let (mut client_reads, mut client_writes) = tokio::io::split(client);
            let (mut server_reads, mut server_writes) = tokio::io::split(server);
            let (up, down) = (content(count), content(count + 1));
            let (mut came_up, mut came_down) = (vec![0; up.len()], vec![0; down.len()]);
            let (_, _, read_up, read_down) = tokio::join!(
                say(&mut client_writes, &up),
                say(&mut server_writes, &down),
                server_reads.read_exact(&mut came_up),
                client_reads.read_exact(&mut came_down),
            );
            assert!(read_up.is_ok() && read_down.is_ok());
            assert!(came_up == up && came_down == down, "{version:?} by {room_bytes}");
        }
    }
}

#[tokio::test]
async fn an_idle_connection_holds_no_memory_for_what_is_read_and_written() {
    let (mut client, mut server) = Pair::of(&version::TLS13).connect(1 << 20).await;
    for _ in 0..2 {
        say(&mut client, &content(40_000)).await;
        server.read_exact(&mut vec![0; 40_000]).await.expect("read");
        say(&mut server, &content(40_000)).await;
        client.read_exact(&mut vec![0; 40_000]).await.expect("read");
        let held = [&server.incoming, &server.opened, &server.outgoing].map(Vec::capacity);
        assert_eq!(held, [0; 3]);
    }
}

#[tokio::test]
async fn either_side_may_end_and_the_other_knows_that_nothing_is_missing() {
    let (mut client, mut server) = Pair::of(&version::TLS13).connect(1 << 20).await;
    say(&mut client, b"last").await;
    client.shutdown().await.expect("ended");
    let mut came = Vec::new();
    server.read_to_end(&mut came).await.expect("a clean end");
    assert_eq!(came, b"last");
    say(&mut server, b"answer").await;
    server.shutdown().await.expect("ended");
    assert!(server.write_all(b"more").await.is_err(), "after its end nothing is said");
    let mut came = Vec::new();
    client.read_to_end(&mut came).await.expect("a clean end");
    assert_eq!(came, b"answer");
}

#[tokio::test]
async fn a_connection_that_was_cut_did_not_end() {
    let (client, mut server) = Pair::of(&version::TLS13).connect(1 << 20).await;
    drop(client);
    let cut = server.read_to_end(&mut Vec::new()).await.expect_err("cut");
    assert_eq!(cut.kind(), io::ErrorKind::UnexpectedEof);
}

#[tokio::test]
async fn what_is_no_tls_is_refused_with_an_alert() {
    let pair = Pair::of(&version::TLS13);
    let (mut near, far) = duplex(1 << 20);
    near.write_all(b"GET / HTTP/1.1\r\n\r\n").await.expect("written");
    let refused = TlsStream::accept(pair.server, far).await.err().expect("refused");
    assert_eq!(refused.kind(), io::ErrorKind::InvalidData);
    let mut received = Vec::new();
    near.read_to_end(&mut received).await.expect("an end");
    assert_eq!((received[0], received.len()), (21, 7), "one record, an alert: {received:?}");
}

#[tokio::test]
async fn a_record_that_nobody_has_sealed_ends_the_connection() {
    let (client, mut server) = Pair::of(&version::TLS13).connect(1 << 20).await;
    let (mut pipe, _) = client.into_inner();
    let mut record = vec![23, 3, 3, 0, 20];
    record.extend(1..=20);
    pipe.write_all(&record).await.expect("written");
    let broken = server.read_to_end(&mut Vec::new()).await.expect_err("not sealed");
    assert_eq!(broken.kind(), io::ErrorKind::InvalidData);
}
