//! Devices over real sockets: lines that go dead silently, and devices that never read.

use std::net::SocketAddr;
use std::time::Duration;

use stentor_core::id::DeviceId;
use stentor_core::message::Content;
use stentor_gateway::client::{McsClient, McsClientEvent};
use stentor_gateway::mcs::{self, McsLimits};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_util::sync::CancellationToken;

use super::program::{Program, persistent};
use crate::room::{Room, to};

const PATIENCE: Duration = Duration::from_secs(30);
/// Approximate size of a socket's buffer in these tests; the system may double it.
const SOCKET_BYTES: u32 = 8 << 10;
const ANY_PORT: SocketAddr = SocketAddr::V4(std::net::SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, 0));

/// Serves every connection.
fn serve(program: &Program) -> SocketAddr {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_send_buffer_size(SOCKET_BYTES).expect("set");
    socket.bind(ANY_PORT).expect("bound");
    let listener = socket.listen(16).expect("listens");
    let address = listener.local_addr().expect("bound");
    let (gateway, limits, stopping) = (program.gateway.clone(), program.limits, program.stopping.clone());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (gateway, stopping) = (gateway.clone(), stopping.clone());
            tokio::spawn(mcs::serve(gateway, stream, stopping, CancellationToken::new(), limits));
        }
    });
    address
}

/// A line between a device and the server that can go dead: both sockets stay open, and no bytes pass any more.
struct Line {
    address: SocketAddr,
    dead: CancellationToken,
}

impl Line {
    async fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind(ANY_PORT).await.expect("bound");
        let (address, dead) = (listener.local_addr().expect("bound"), CancellationToken::new());
        let is_dead = dead.clone();
        tokio::spawn(async move {
            let (mut near, _) = listener.accept().await.expect("a device");
            let mut far = TcpStream::connect(server).await.expect("the server");
            let ((mut from_near, mut to_near), (mut from_far, mut to_far)) = (near.split(), far.split());
            tokio::select! {
                _ended = copy(&mut from_near, &mut to_far) => {}
                _ended = copy(&mut from_far, &mut to_near) => {}
                () = is_dead.cancelled() => std::future::pending().await,
            }
        });
        Self { address, dead }
    }
}

async fn connected(program: &Program, address: SocketAddr) -> McsClient<TcpStream> {
    McsClient::connect(&address.to_string(), program.login()).await.expect("let in")
}

/// Waits for a message, and confirms it.
async fn confirmed(client: &mut McsClient<TcpStream>) -> String {
    loop {
        let event = tokio::time::timeout(PATIENCE, client.next()).await.expect("something comes");
        if let McsClientEvent::Message(data) = event.expect("the connection lives") {
            let id = persistent(&data);
            client.acknowledge(std::slice::from_ref(&id)).await.expect("confirmed");
            return id;
        }
    }
}

async fn until_away(room: &Room, device: DeviceId) {
    let away = async {
        while room.gateway.is_connected(device) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, away).await.expect("it is cut off");
}

#[tokio::test]
async fn a_device_whose_line_goes_dead_is_cut_off_and_gets_later_what_was_written_to_nobody() {
    let room = Room::new().await;
    let mut program = Program::check_in(&room.gateway);
    let short = Duration::from_millis(100);
    program.limits = McsLimits {
        heartbeat: short,
        heartbeat_min: Duration::from_millis(1),
        heartbeat_ack_timeout: short,
        ..program.limits
    };
    let device = program.device(&program.register(room.app, "one").await).await.device;
    let server = serve(&program);
    let line = Line::to(server).await;
    let mut lost = connected(&program, line.address).await;
    lost.ping().await.expect("asked");
    // The device answers every heartbeat that reaches it.
    let lost = tokio::spawn(async move { while lost.next().await.is_ok() {} });
    while !room.gateway.is_connected(device) {
        tokio::task::yield_now().await;
    }
    line.dead.cancel();
    let sent = room.send(to(&[device])).await;
    until_away(&room, device).await;
    assert!(!lost.is_finished(), "nobody has told the device");
    assert_eq!(room.delivered(sent).await, 0);
    let mut back = connected(&program, server).await;
    assert_eq!(confirmed(&mut back).await, sent.to_string());
}

#[tokio::test]
async fn a_device_that_comes_back_while_its_dead_line_is_open_takes_its_own_place_at_once() {
    let room = Room::new().await;
    let program = Program::check_in(&room.gateway);
    let device = program.device(&program.register(room.app, "one").await).await.device;
    let server = serve(&program);
    let line = Line::to(server).await;
    let _lost = connected(&program, line.address).await;
    while !room.gateway.is_connected(device) {
        tokio::task::yield_now().await;
    }
    line.dead.cancel();
    let sent = room.send(to(&[device])).await;
    // The server would notice the dead line after four minutes.
    let mut back = connected(&program, server).await;
    assert_eq!(confirmed(&mut back).await, sent.to_string());
    let next = room.send(to(&[device])).await;
    assert_eq!(confirmed(&mut back).await, next.to_string());
}

#[tokio::test]
async fn a_device_that_never_reads_is_given_a_window_at_most_and_cut_off_while_others_get_everything() {
    const MESSAGES: usize = 150;
    const TEXT_BYTES: usize = 4_000;
    let room = Room::new().await;
    let mut program = Program::check_in(&room.gateway);
    program.limits.write_timeout = Duration::from_secs(2);
    let deaf = program.device(&program.register(room.app, "deaf").await).await.device;
    let other = Program::check_in(&room.gateway);
    let hearing = other.device(&other.register(room.app, "hearing").await).await.device;
    let server = serve(&program);
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(SOCKET_BYTES).expect("set");
    let mut unread = socket.connect(server).await.expect("connected");
    unread.write_all(&super::login::login_bytes(&program)).await.expect("written");
    let mut reader = connected(&other, server).await;
    while !room.gateway.is_connected(deaf) || !room.gateway.is_connected(hearing) {
        tokio::task::yield_now().await;
    }
    let data = [("text".to_owned(), "x".repeat(TEXT_BYTES))].into();
    let content = Content { data, ..Content::default() };
    let reading = tokio::spawn(async move {
        let mut got = Vec::new();
        while got.len() < MESSAGES {
            got.push(confirmed(&mut reader).await);
        }
        got
    });
    let mut sent = Vec::new();
    for _ in 0..MESSAGES {
        sent.push(room.send_content(to(&[deaf, hearing]), &content).await.to_string());
    }
    assert_eq!(reading.await.expect("all came"), sent, "nobody waits for who does not read");
    until_away(&room, deaf).await;
    let mut left = Vec::new();
    let _reset = unread.read_to_end(&mut left).await;
    let window_bytes = program.limits.window_max_count * (TEXT_BYTES + 1_000);
    assert!(left.len() < window_bytes, "{} bytes were written to who never read", left.len());
}
