//! Small senders and receivers on both sides of a rig, which measure its link.

use crate::monotonic::now_ns;
use crate::priority::step_forward;
use crate::rig::Rig;
use crate::side::Side;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A datagram: a number and the time when it was sent.
const DATAGRAM_BYTES: usize = 16;
/// The time that a receiver waits for a datagram that may be lost.
const PATIENCE: Duration = Duration::from_millis(1500);

/// Sends `count` small datagrams from a side, with a pause after each group of them, and returns the delays of those that arrived, in
/// nanoseconds.
pub fn one_way(rig: &Rig, from: Side, count: u64, group: u64, pause: Duration) -> io::Result<Vec<u64>> {
    let to = from.other();
    let any = SocketAddr::new(rig.address(to), 0);
    let receiver = join(rig.within(to, move || UdpSocket::bind(any))?)?;
    let target = receiver.local_addr()?;
    receiver.set_read_timeout(Some(PATIENCE))?;
    let receiving = rig.within(to, move || receive(&receiver, count))?;
    let any = SocketAddr::new(rig.address(from), 0);
    let sending = rig.within(from, move || send(&UdpSocket::bind(any)?, target, count, group, pause))?;
    join(sending)?;
    join(receiving)
}

fn send(socket: &UdpSocket, target: SocketAddr, count: u64, group: u64, pause: Duration) -> io::Result<()> {
    step_forward();
    for number in 0..count {
        let mut datagram = [0; DATAGRAM_BYTES];
        datagram[..8].copy_from_slice(&number.to_le_bytes());
        datagram[8..].copy_from_slice(&now_ns().to_le_bytes());
        socket.send_to(&datagram, target)?;
        if (number + 1).is_multiple_of(group) {
            thread::sleep(pause);
        }
    }
    Ok(())
}

fn receive(socket: &UdpSocket, count: u64) -> io::Result<Vec<u64>> {
    step_forward();
    let mut delays_ns = Vec::new();
    let mut datagram = [0; DATAGRAM_BYTES];
    loop {
        match socket.recv(&mut datagram) {
            Ok(DATAGRAM_BYTES) => {
                let [number, sent_ns] = [&datagram[..8], &datagram[8..]].map(number);
                delays_ns.push(now_ns().saturating_sub(sent_ns));
                if number + 1 == count {
                    return Ok(delays_ns);
                }
            }
            Ok(_) => {}
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                return Ok(delays_ns);
            }
            Err(error) => return Err(error),
        }
    }
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Sends a number of bytes over one TCP connection and returns the rate of their arrival, in bits of payload a second.
pub fn goodput(rig: &Rig, from: Side, bytes: usize) -> io::Result<f64> {
    let to = from.other();
    let any = SocketAddr::new(rig.address(to), 0);
    let listener = join(rig.within(to, move || TcpListener::bind(any))?)?;
    let target = listener.local_addr()?;
    let receiving = rig.within(to, move || drain(&listener, bytes))?;
    let sending = rig.within(from, move || TcpStream::connect(target)?.write_all(&vec![0x55; bytes]))?;
    join(sending)?;
    join(receiving)
}

/// Reads to the end; the first read begins the time, so that the handshake and the first flight are not in it.
fn drain(listener: &TcpListener, bytes: usize) -> io::Result<f64> {
    step_forward();
    let (mut stream, _) = listener.accept()?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    let mut buffer = vec![0; 1 << 16];
    let first = stream.read(&mut buffer)?;
    let started_ns = now_ns();
    let mut rest = 0;
    while first + rest < bytes {
        match stream.read(&mut buffer)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            length => rest += length,
        }
    }
    let seconds = now_ns().saturating_sub(started_ns).max(1) as f64 / 1e9;
    Ok(rest as f64 * 8.0 / seconds)
}

/// Requests a response of this size over HTTP/1.1, `count` times, each time over a connection of its own.
pub fn exchanges(rig: &Rig, count: usize, payload_bytes: usize) -> io::Result<()> {
    let any = SocketAddr::new(rig.address(Side::Server), 0);
    let listener = join(rig.within(Side::Server, move || TcpListener::bind(any))?)?;
    let target = listener.local_addr()?;
    let answering = rig.within(Side::Server, move || {
        (0..count).try_for_each(|_| {
            let (mut stream, _) = listener.accept()?;
            let _ = read_message(&mut stream, payload_bytes)?;
            stream.write_all(&message("HTTP/1.1 200 OK", payload_bytes))
        })
    })?;
    let asking = rig.within(Side::Device, move || {
        (0..count).try_for_each(|_| {
            let mut stream = TcpStream::connect(target)?;
            stream.write_all(&message("POST /echo HTTP/1.1\r\nHost: server", payload_bytes))?;
            read_message(&mut stream, payload_bytes).map(|_| ())
        })
    })?;
    join(asking)?;
    join(answering)
}

fn message(start: &str, payload_bytes: usize) -> Vec<u8> {
    let mut bytes = format!("{start}\r\nContent-Length: {payload_bytes}\r\n\r\n").into_bytes();
    bytes.resize(bytes.len() + payload_bytes, b'x');
    bytes
}

fn read_message(stream: &mut TcpStream, payload_bytes: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let head = bytes.windows(4).position(|window| window == b"\r\n\r\n");
        if head.is_some_and(|head| bytes.len() >= head + 4 + payload_bytes) {
            return Ok(bytes);
        }
        match stream.read(&mut buffer)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            length => bytes.extend_from_slice(&buffer[..length]),
        }
    }
}

/// Waits for a probe.
pub(crate) fn join<T>(probe: JoinHandle<io::Result<T>>) -> io::Result<T> {
    probe.join().unwrap_or_else(|_| Err(io::Error::other("a probe ended unexpectedly")))
}
