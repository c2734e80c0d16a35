//! One server called through one face: the rate of calls and the cost of each, turn by turn.

use crate::faces::replay::Replay;
use crate::faces::replaying_caller::ReplayingCaller;
use anyhow::{Context, ensure};
use procfs::process::Process;
use std::time::{Duration, Instant};
use stentor_lab::statistics::Samples;

/// A process under load, with its results.
pub(super) struct MeasuredFace {
    replay: Replay,
    /// Id of the measured process.
    process: u32,
    /// The body of the first reply; all others must be equal, because the record does not change.
    pub(super) reply: Vec<u8>,
    /// Calls per second, turn by turn.
    pub(super) rates: Samples,
    /// Microseconds of the process' processor time for each call, turn by turn.
    pub(super) cpu: Samples,
    /// All calls that were timed.
    pub(super) calls: u64,
}

impl MeasuredFace {
    /// Makes one call and checks that the reply has all of these texts.
    pub(super) fn find(replay: Replay, process: u32, texts: &[String]) -> anyhow::Result<Self> {
        let reply = ReplayingCaller::connect(&replay)?.call()?.to_vec();
        let missing = texts.iter().find(|text| !contains(&reply, text.as_bytes()));
        ensure!(
            missing.is_none(),
            "a reply lacks {missing:?}: {}",
            String::from_utf8_lossy(&reply).chars().take(400).collect::<String>()
        );
        let (rates, cpu) = (Samples::default(), Samples::default());
        Ok(Self { replay, process, reply, rates, cpu, calls: 0 })
    }

    /// Returns the size of one request, with its framing.
    pub(super) const fn request_bytes(&self) -> usize {
        self.replay.request.len()
    }

    /// Calls for a while without measuring.
    pub(super) fn warm_up(&self, connections: usize, limit: Duration) -> anyhow::Result<u64> {
        self.load(&mut self.callers(connections)?, limit)
    }

    /// Makes calls for the time `limit` over connections of its own, each with one call at a time, and records the rate and the cost.
    pub(super) fn take_turn(&mut self, connections: usize, limit: Duration) -> anyhow::Result<()> {
        // Before the clock starts: the cost of connecting does not count.
        let mut callers = self.callers(connections)?;
        let (before, started) = (cpu_seconds(self.process)?, Instant::now());
        let calls = self.load(&mut callers, limit)?;
        let (wall, cpu) = (started.elapsed().as_secs_f64(), cpu_seconds(self.process)? - before);
        self.rates.push(calls as f64 / wall);
        self.cpu.push(cpu * 1e6 / calls as f64);
        self.calls += calls;
        Ok(())
    }

    /// Opens connections and makes the first call over each.
    fn callers(&self, connections: usize) -> anyhow::Result<Vec<ReplayingCaller>> {
        let connect = |_| {
            let mut caller = ReplayingCaller::connect(&self.replay)?;
            self.check(caller.call()?)?;
            Ok(caller)
        };
        (0..connections).map(connect).collect()
    }

    /// Calls over all connections at once, each in a thread of its own.
    fn load(&self, callers: &mut [ReplayingCaller], limit: Duration) -> anyhow::Result<u64> {
        let end = Instant::now() + limit;
        std::thread::scope(|scope| {
            let threads: Vec<_> =
                callers.iter_mut().map(|caller| scope.spawn(move || self.call_until(end, caller))).collect();
            let counts = threads.into_iter().map(|thread| match thread.join() {
                Ok(count) => count,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            counts.sum()
        })
    }

    fn call_until(&self, end: Instant, caller: &mut ReplayingCaller) -> anyhow::Result<u64> {
        let mut calls = 0;
        while Instant::now() < end {
            self.check(caller.call()?)?;
            calls += 1;
        }
        Ok(calls)
    }

    fn check(&self, reply: &[u8]) -> anyhow::Result<()> {
        ensure!(reply == self.reply, "a reply differs: {}", String::from_utf8_lossy(reply));
        Ok(())
    }
}

/// Seconds of processor time that a process has used so far, in user and in system mode, as the system counts them.
fn cpu_seconds(process: u32) -> anyhow::Result<f64> {
    let stat = Process::new(process.cast_signed()).and_then(|process| process.stat());
    let stat = stat.context("a measured process has ended")?;
    Ok((stat.utime + stat.stime) as f64 / procfs::ticks_per_second() as f64)
}

fn contains(bytes: &[u8], text: &[u8]) -> bool {
    !text.is_empty() && bytes.windows(text.len()).any(|window| window == text)
}
