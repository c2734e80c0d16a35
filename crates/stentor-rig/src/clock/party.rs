//! The two parties of a one-way-delay test, each a process with a clock of its own: they query a time server as the paper describes it,
//! exchange messages, and record the readings of their clocks.

use super::Drifting;
use super::sntp::{self, Stamps, is_silence};
use crate::monotonic::now_ns;
use crate::priority::step_forward;
use std::io::{self, Write};
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// The first byte of a datagram between the parties.
const SYNC: u8 = b'S';
const CONFIRM: u8 = b'C';
const MESSAGE: u8 = b'M';
const END: u8 = b'E';
/// The time after which a party repeats an unanswered request, and the time after which it gives up.
const ASK_EVERY: Duration = Duration::from_millis(500);
const REFUSED_PAUSE: Duration = Duration::from_millis(20);
const GIVE_UP: Duration = Duration::from_secs(60);
/// Nothing answers the last datagram, so it is sent more than once.
const END_TIMES: usize = 3;
/// The smallest payload of albertengo-2020.
const MESSAGE_BYTES: usize = 64;

/// The steps of a test and their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocol {
    /// The number of tests, each with blocks of its own.
    pub tests: u32,
    /// Blocks of messages in a test. Both parties query the time server before each block and after the last.
    pub blocks: u32,
    /// Messages in a block.
    pub messages: u32,
    /// The interval between two messages.
    pub interval: Duration,
    /// Queries of each party, each time.
    pub queries: u32,
}

impl Protocol {
    /// The protocol of the paper: 10 tests of 500 messages, one each 500 ms, both clocks compared after each 100.
    pub const PAPER: Self =
        Self { tests: 10, blocks: 5, messages: 100, interval: Duration::from_millis(500), queries: 100 };
    /// One test of the paper's counts, with messages each 10 ms.
    pub const QUICK: Self = Self { tests: 1, interval: Duration::from_millis(10), ..Self::PAPER };

    /// The number of rounds in which each party queries the time server.
    #[must_use]
    pub const fn syncs(&self) -> u32 {
        self.tests * (self.blocks + 1)
    }
}

/// A record written by a party.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartyRecord {
    /// Its clock began to run, by its own monotonic clock.
    Clock(u64),
    /// A query of this round.
    Query(u32, Stamps),
    /// The phone sent a message and received it back.
    Sent {
        /// The number of the message, counted over all tests.
        number: u32,
        /// The time of sending.
        sent_ns: i64,
        /// The time of the return.
        back_ns: i64,
    },
    /// A message arrived at the server.
    Arrived {
        /// The number of the message.
        number: u32,
        /// The time of arrival, in nanoseconds of the server's clock.
        at_ns: i64,
    },
}

impl PartyRecord {
    /// Writes a line.
    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        match self {
            Self::Clock(since_ns) => writeln!(out, "clock {since_ns}"),
            Self::Query(round, Stamps { asked_ns, received_ns, answered_ns, known_ns }) => {
                writeln!(out, "query {round} {asked_ns} {received_ns} {answered_ns} {known_ns}")
            }
            Self::Sent { number, sent_ns, back_ns } => writeln!(out, "sent {number} {sent_ns} {back_ns}"),
            Self::Arrived { number, at_ns } => writeln!(out, "arrived {number} {at_ns}"),
        }
    }

    /// Parses a line; `None` if it is not a party's record.
    #[must_use]
    pub fn read(line: &str) -> Option<Self> {
        let (word, rest) = line.split_once(' ')?;
        let numbers: Vec<i64> = rest.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
        match (word, &numbers[..]) {
            ("clock", [since]) => Some(Self::Clock(u64::try_from(*since).ok()?)),
            ("query", [round, asked_ns, received_ns, answered_ns, known_ns]) => {
                let (asked_ns, received_ns, answered_ns, known_ns) =
                    (*asked_ns, *received_ns, *answered_ns, *known_ns);
                Some(Self::Query(
                    u32::try_from(*round).ok()?,
                    Stamps { asked_ns, received_ns, answered_ns, known_ns },
                ))
            }
            ("sent", [number, sent_ns, back_ns]) => Some(Self::Sent {
                number: u32::try_from(*number).ok()?,
                sent_ns: *sent_ns,
                back_ns: *back_ns,
            }),
            ("arrived", [number, at_ns]) => {
                Some(Self::Arrived { number: u32::try_from(*number).ok()?, at_ns: *at_ns })
            }
            _ => None,
        }
    }
}

/// A party, with its clock, its protocol and its output.
#[derive(Debug)]
pub struct Party<W> {
    clock: Drifting,
    /// The address of the time server.
    time_server: SocketAddr,
    protocol: Protocol,
    out: W,
}

impl<W: Write> Party<W> {
    /// Starts the party's clock, and records its start.
    pub fn start(
        clock: Drifting,
        time_server: SocketAddr,
        protocol: Protocol,
        mut out: W,
    ) -> io::Result<Self> {
        step_forward();
        let clock = Drifting { since_ns: now_ns(), ..clock };
        PartyRecord::Clock(clock.since_ns).write(&mut out)?;
        Ok(Self { clock, time_server, protocol, out })
    }

    /// The phone: compares its clock, makes the server do the same, and sends messages, as the protocol defines.
    pub fn be_phone(&mut self, socket: &UdpSocket, server: SocketAddr) -> io::Result<()> {
        socket.connect(server)?;
        let mut round = 0;
        let mut number = 0;
        for _ in 0..self.protocol.tests {
            for _ in 0..self.protocol.blocks {
                self.compare(socket, &mut round)?;
                for _ in 0..self.protocol.messages {
                    let next = Instant::now() + self.protocol.interval;
                    self.send(socket, number)?;
                    number += 1;
                    std::thread::sleep(next.saturating_duration_since(Instant::now()));
                }
            }
            self.compare(socket, &mut round)?;
        }
        for _ in 0..END_TIMES {
            // Once the server has ended, the repeated datagrams are refused, which is harmless.
            let _ = socket.send(&[END]);
            std::thread::sleep(REFUSED_PAUSE);
        }
        self.out.flush()
    }

    /// The server: serves the phone's requests until the phone reports its end.
    pub fn be_server(&mut self, socket: &UdpSocket) -> io::Result<()> {
        socket.set_read_timeout(Some(GIVE_UP))?;
        let mut buffer = [0; 2048];
        let mut compared = None;
        loop {
            let (length, phone) = socket.recv_from(&mut buffer)?;
            let at_ns = self.clock.now();
            match (buffer[0], number(&buffer[..length])) {
                (MESSAGE, Some(number)) => {
                    socket.send_to(&buffer[..length], phone)?;
                    PartyRecord::Arrived { number, at_ns }.write(&mut self.out)?;
                }
                (SYNC, Some(round)) => {
                    if compared != Some(round) {
                        self.ask_time(round)?;
                        compared = Some(round);
                    }
                    socket.send_to(&datagram(CONFIRM, round, 0), phone)?;
                }
                (END, _) if length == 1 => return self.out.flush(),
                _ => {}
            }
        }
    }

    /// The phone's queries, then the server's, then its confirmation.
    fn compare(&mut self, socket: &UdpSocket, round: &mut u32) -> io::Result<()> {
        self.ask_time(*round)?;
        self.exchange(socket, &datagram(SYNC, *round, 0), CONFIRM, *round)?;
        *round += 1;
        // Flushed so that a waiting reader sees the progress.
        self.out.flush()
    }

    fn ask_time(&mut self, round: u32) -> io::Result<()> {
        let any = match self.time_server {
            SocketAddr::V4(_) => "0.0.0.0:0",
            SocketAddr::V6(_) => "[::]:0",
        };
        let socket = UdpSocket::bind(any)?;
        for _ in 0..self.protocol.queries {
            let stamps = sntp::ask(&socket, self.time_server, self.clock)?;
            PartyRecord::Query(round, stamps).write(&mut self.out)?;
        }
        Ok(())
    }

    fn send(&mut self, socket: &UdpSocket, number: u32) -> io::Result<()> {
        let message = datagram(MESSAGE, number, MESSAGE_BYTES);
        let sent_ns = self.clock.now();
        self.exchange(socket, &message, MESSAGE, number)?;
        PartyRecord::Sent { number, sent_ns, back_ns: self.clock.now() }.write(&mut self.out)
    }

    /// Sends a request until the response with this number arrives.
    fn exchange(&self, socket: &UdpSocket, request: &[u8], wanted: u8, of: u32) -> io::Result<()> {
        let started = Instant::now();
        let mut buffer = [0; 2048];
        // A message is sent once: a second one would arrive at another time under the same number.
        let is_patient = wanted == MESSAGE;
        socket.set_read_timeout(Some(if is_patient { GIVE_UP } else { ASK_EVERY }))?;
        socket.send(request)?;
        while started.elapsed() < GIVE_UP {
            match socket.recv(&mut buffer) {
                Ok(length) if buffer[0] == wanted && number(&buffer[..length]) == Some(of) => return Ok(()),
                Ok(_) => {}
                Err(error) if is_silence(&error) && !is_patient => {
                    socket.send(request)?;
                }
                // Not there yet.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused && !is_patient => {
                    std::thread::sleep(REFUSED_PAUSE);
                    // The next response shows whether this was received.
                    let _ = socket.send(request);
                }
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::new(io::ErrorKind::TimedOut, "the other party does not answer"))
    }
}

fn datagram(kind: u8, number: u32, at_least: usize) -> Vec<u8> {
    let mut bytes = vec![kind];
    bytes.extend(number.to_le_bytes());
    bytes.resize(bytes.len().max(at_least), b'x');
    bytes
}

fn number(datagram: &[u8]) -> Option<u32> {
    datagram.get(1..5)?.try_into().ok().map(u32::from_le_bytes)
}
