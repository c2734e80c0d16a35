//! SNTP (RFC 4330): packets with four time stamps, a server that answers from a clock, and a client.

use super::Drifting;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A packet without extensions.
pub const PACKET_BYTES: usize = 48;
const VERSION: u8 = 4;
const CLIENT: u8 = 3;
const SERVER: u8 = 4;
const BILLION: u64 = 1_000_000_000;
/// The interval at which a server checks its stop flag.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// The timeout after which a client repeats a query, and the timeout after which it gives up.
const ASK_AGAIN: Duration = Duration::from_secs(3);
const PATIENCE: Duration = Duration::from_secs(60);

/// The four time stamps of a query, in nanoseconds: the outer two by the asker's clock, the inner two by the answerer's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamps {
    /// The query leaves.
    pub asked_ns: i64,
    /// The query arrives.
    pub received_ns: i64,
    /// The answer leaves.
    pub answered_ns: i64,
    /// The answer arrives.
    pub known_ns: i64,
}

impl Stamps {
    /// The apparent offset by which the answering clock is ahead of the querying one, in nanoseconds.
    #[must_use]
    pub fn offset_ns(&self) -> f64 {
        ((self.received_ns - self.asked_ns) as f64 + (self.answered_ns - self.known_ns) as f64) / 2.0
    }

    /// The time on the way, there and back, in nanoseconds.
    #[must_use]
    pub const fn round_trip_ns(&self) -> i64 {
        (self.known_ns - self.asked_ns) - (self.answered_ns - self.received_ns)
    }

    /// Returns the stamps as a clock of whole milliseconds would give them.
    #[must_use]
    pub const fn in_whole_ms(&self) -> Self {
        const MS_NS: i64 = 1_000_000;
        Self {
            asked_ns: self.asked_ns.div_euclid(MS_NS) * MS_NS,
            received_ns: self.received_ns.div_euclid(MS_NS) * MS_NS,
            answered_ns: self.answered_ns.div_euclid(MS_NS) * MS_NS,
            known_ns: self.known_ns.div_euclid(MS_NS) * MS_NS,
        }
    }
}

/// A time stamp: seconds in the upper 32 bits, their 2^32th parts in the lower.
#[must_use]
pub const fn to_stamp(ns: i64) -> u64 {
    let seconds = ns.div_euclid(BILLION as i64) as u64;
    let rest = ns.rem_euclid(BILLION as i64) as u64;
    // Rounded up, so that reading rounds it back to the same nanosecond.
    (seconds << 32) | (rest << 32).div_ceil(BILLION)
}

/// The time of a stamp, in nanoseconds; only the lower 31 bits of its seconds are looked at, which is 68 years.
#[must_use]
pub const fn from_stamp(stamp: u64) -> i64 {
    let seconds = (stamp >> 32) & 0x7fff_ffff;
    let rest = ((stamp & 0xffff_ffff) * BILLION) >> 32;
    (seconds * BILLION + rest) as i64
}

/// Encodes a query that leaves at this time.
#[must_use]
pub fn query(asked_ns: i64) -> [u8; PACKET_BYTES] {
    let mut packet = [0; PACKET_BYTES];
    packet[0] = VERSION << 3 | CLIENT;
    packet[40..48].copy_from_slice(&to_stamp(asked_ns).to_be_bytes());
    packet
}

/// Encodes the response to a query; `None` if the bytes are not a query.
#[must_use]
pub fn answer(query: &[u8], received_ns: i64, answered_ns: i64) -> Option<[u8; PACKET_BYTES]> {
    if query.len() < PACKET_BYTES || query[0] & 7 != CLIENT {
        return None;
    }
    let mut packet = [0; PACKET_BYTES];
    // No warning, and the version of the query.
    packet[0] = query[0] & 0x38 | SERVER;
    // A primary server with a clock that is exact to about 2^-30 s.
    packet[1] = 1;
    packet[3] = (-30_i8).cast_unsigned();
    packet[12..16].copy_from_slice(b"LOCL");
    packet[24..32].copy_from_slice(&query[40..48]);
    packet[16..24].copy_from_slice(&to_stamp(received_ns).to_be_bytes());
    packet[32..40].copy_from_slice(&to_stamp(received_ns).to_be_bytes());
    packet[40..48].copy_from_slice(&to_stamp(answered_ns).to_be_bytes());
    Some(packet)
}

/// Reads the answer to the query that left at `asked_ns`; `None` if it is the answer to another, or none.
#[must_use]
pub fn read(packet: &[u8], asked_ns: i64, known_ns: i64) -> Option<Stamps> {
    let stamp = |at: usize| Some(u64::from_be_bytes(packet.get(at..at + 8)?.try_into().ok()?));
    let is_answer = packet.len() >= PACKET_BYTES && packet[0] & 7 == SERVER && packet[1] != 0;
    if !is_answer || stamp(24)? != to_stamp(asked_ns) {
        return None;
    }
    let (received_ns, answered_ns) = (from_stamp(stamp(32)?), from_stamp(stamp(40)?));
    Some(Stamps { asked_ns, received_ns, answered_ns, known_ns })
}

/// Answers queries until it is stopped.
pub fn serve(socket: &UdpSocket, clock: Drifting, stop: &AtomicBool) -> io::Result<()> {
    socket.set_read_timeout(Some(LOOK_EVERY))?;
    let mut buffer = [0; 512];
    while !stop.load(Ordering::Relaxed) {
        match socket.recv_from(&mut buffer) {
            Ok((length, asker)) => {
                let received_ns = clock.now();
                if let Some(answer) = answer(&buffer[..length], received_ns, clock.now()) {
                    // A client that does not receive it queries again.
                    let _ = socket.send_to(&answer, asker);
                }
            }
            Err(error) if is_silence(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Queries until an answer arrives, with new time stamps each time. Fails if none arrives for a minute.
pub fn ask(socket: &UdpSocket, server: SocketAddr, clock: Drifting) -> io::Result<Stamps> {
    let started = Instant::now();
    socket.set_read_timeout(Some(ASK_AGAIN))?;
    while started.elapsed() < PATIENCE {
        match ask_once(socket, server, clock) {
            // A datagram may be lost, or either side may not run for a while on a busy machine.
            Err(error) if is_silence(&error) => {}
            outcome => return outcome,
        }
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, "the time server does not answer"))
}

fn ask_once(socket: &UdpSocket, server: SocketAddr, clock: Drifting) -> io::Result<Stamps> {
    let asked_ns = clock.now();
    socket.send_to(&query(asked_ns), server)?;
    let mut buffer = [0; 512];
    loop {
        let (length, _) = socket.recv_from(&mut buffer)?;
        let known_ns = clock.now();
        // A late answer to an earlier query has other stamps.
        if let Some(stamps) = read(&buffer[..length], asked_ns, known_ns) {
            return Ok(stamps);
        }
    }
}

pub(super) fn is_silence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests;
