//! The link engine: one thread that takes packets from either side and delivers them to the other when they are due.

mod totals;
mod wire;

use crate::capture::Capture;
use crate::lateness::Lateness;
use crate::link::{Link, PacketOutcome, Shaper};
use crate::monotonic::now_ns;
use crate::priority::step_forward;
use crate::side::Side;
use parking_lot::{Mutex, MutexGuard};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use totals::EngineTotals;
use wire::Wire;

pub use totals::Traffic;

/// The kernel wakes a thread with less slack than this as exactly as it can.
const TIMER_SLACK_NS: NonZeroU64 = NonZeroU64::MIN;
/// Packets that are taken from one side before the other has its turn.
const TURN_PACKETS: usize = 64;
const SECOND_NS: u64 = 1_000_000_000;

/// A running engine; dropping it stops it.
#[derive(Debug)]
pub(crate) struct LinkEngine {
    shared: Arc<EngineShared>,
    thread: Option<JoinHandle<()>>,
}

/// The state shared by the thread and its owner.
#[derive(Debug)]
struct EngineShared {
    totals: Mutex<EngineTotals>,
    is_over: AtomicBool,
    wake: OwnedFd,
    /// A deliberate slowdown of the engine, to test that lateness is noticed.
    hindrance_ns: AtomicU64,
    /// While set, every packet that enters the link is lost.
    is_cut: AtomicBool,
}

impl EngineShared {
    fn totals(&self) -> MutexGuard<'_, EngineTotals> {
        // Books are sums and a list: a panic elsewhere leaves them as they were.
        self.totals.lock()
    }
}

impl LinkEngine {
    /// Starts it between two TUN devices, the device's first.
    pub(crate) fn start(link: &Link, seed: u64, tuns: [File; 2]) -> io::Result<Self> {
        let shared = Arc::new(EngineShared {
            totals: Mutex::default(),
            is_over: AtomicBool::new(false),
            wake: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            hindrance_ns: AtomicU64::new(0),
            is_cut: AtomicBool::new(false),
        });
        // The two directions are to differ in their luck.
        let shapers = [Shaper::new(link.up.clone(), seed), Shaper::new(link.down.clone(), !seed)];
        let mut run = EngineLoop {
            shared: Arc::clone(&shared),
            tuns,
            wire: Wire::new(shapers),
            buffer: vec![0; 65_536],
        };
        let thread = thread::Builder::new().name("rig-link".to_owned()).spawn(move || run.go())?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Begins to capture packets.
    pub(crate) fn begin_capture(&self) {
        self.shared.totals().begin_capture();
    }

    /// Ends the capture and returns it.
    pub(crate) fn end_capture(&self) -> Capture {
        self.shared.totals().end_capture()
    }

    /// Returns the lateness.
    pub(crate) fn lateness(&self) -> Lateness {
        self.shared.totals().lateness.summary()
    }

    /// Resets the lateness.
    pub(crate) fn reset_lateness(&self) {
        self.shared.totals().lateness = crate::lateness::LatenessHistogram::default();
    }

    /// Returns the traffic of one direction, given by its sender.
    pub(crate) fn traffic(&self, from: Side) -> Traffic {
        self.shared.totals().traffic[from.index()]
    }

    /// Makes the engine pause for this time before each round; 0 means no pause.
    pub(crate) fn hinder(&self, pause_ns: u64) {
        self.shared.hindrance_ns.store(pause_ns, Ordering::Relaxed);
    }

    /// Cuts the link or joins it again.
    pub(crate) fn cut(&self, is_cut: bool) {
        self.shared.is_cut.store(is_cut, Ordering::Relaxed);
    }
}

impl Drop for LinkEngine {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        // Cannot fail: the counter is far from full.
        let _ = rustix::io::write(&self.shared.wake, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The state of the engine's thread.
struct EngineLoop {
    shared: Arc<EngineShared>,
    /// By the side on which it is.
    tuns: [File; 2],
    wire: Wire,
    buffer: Vec<u8>,
}

impl EngineLoop {
    fn go(&mut self) {
        // These make it more exact where they are allowed; lateness is measured either way.
        let _ = rustix::thread::set_current_timer_slack(Some(TIMER_SLACK_NS));
        step_forward();
        while !self.shared.is_over.load(Ordering::Relaxed) {
            self.hand_on();
            if self.wait().is_err() {
                break;
            }
            self.pause();
            for side in Side::BOTH {
                self.take_in(side);
            }
        }
    }

    /// Sleeps until a packet comes or is due, or the end.
    fn wait(&self) -> io::Result<()> {
        let left_ns = self.wire.next_due_ns().map(|due| due.saturating_sub(now_ns()));
        let timeout = left_ns.map(|left| Timespec {
            tv_sec: (left / SECOND_NS).cast_signed(),
            tv_nsec: (left % SECOND_NS).cast_signed(),
        });
        let [device, server] = &self.tuns;
        let mut files = [
            PollFd::new(device, PollFlags::IN),
            PollFd::new(server, PollFlags::IN),
            PollFd::new(&self.shared.wake, PollFlags::IN),
        ];
        match poll(&mut files, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn pause(&self) {
        let pause_ns = self.shared.hindrance_ns.load(Ordering::Relaxed);
        if pause_ns > 0 {
            thread::sleep(std::time::Duration::from_nanos(pause_ns));
        }
    }

    /// Reads the packets of a side and decides on each of them.
    fn take_in(&mut self, from: Side) {
        for _ in 0..TURN_PACKETS {
            let Ok(length) = rustix::io::read(&self.tuns[from.index()], &mut self.buffer[..]) else { return };
            let time_ns = now_ns();
            let bytes: Arc<[u8]> = self.buffer[..length].into();
            let is_cut = self.shared.is_cut.load(Ordering::Relaxed);
            let outcome = if is_cut { PacketOutcome::Lost } else { self.wire.offer(from, time_ns, &bytes) };
            self.shared.totals().entered(from, time_ns, outcome, &bytes);
            if matches!(outcome, PacketOutcome::Due { at_ns, .. } if at_ns <= time_ns) {
                self.hand_on();
            }
        }
    }

    /// Hands on the packets that are due.
    fn hand_on(&mut self) {
        while let Some(packet) = self.wire.take_due(now_ns()) {
            let to = packet.from.other();
            let is_written = rustix::io::write(&self.tuns[to.index()], &packet.bytes).is_ok();
            self.shared.totals().left(&packet, now_ns(), is_written);
        }
    }
}
