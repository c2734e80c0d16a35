//! Resource use of the laboratory during a fork, and what this machine lost: wake-ups, processor time, memory.

use super::pages::PageProbe;
use super::quantiles;
use crate::record::Instrument;
use crate::statistics::Samples;
use rustix::time::{ClockId, clock_gettime};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use stentor_machine::facts::ProcessorTicks;

const NAP: Duration = Duration::from_millis(5);
/// Each page is touched about once a second.
const PAGES_PER_NAP: usize = 5;
const NANOSECONDS: u64 = 1_000_000_000;

/// A thread that sleeps, measures its wake-ups and touches pages; dropping this ends it.
pub struct InstrumentWatch {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<(Vec<f64>, Option<f64>)>>,
    cpu_ns: u64,
    begun: Instant,
    ticks: Option<ProcessorTicks>,
}

impl InstrumentWatch {
    /// Starts the measurement.
    #[must_use]
    pub fn begin() -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&is_over);
        let thread = Some(std::thread::spawn(move || nap_until(&flag)));
        Self { is_over, thread, cpu_ns: cpu_ns(), begun: Instant::now(), ticks: ProcessorTicks::now() }
    }

    /// Ends the measurement. Returns the resource use, and the 95th percentile of wake-up lateness in milliseconds.
    #[must_use]
    pub fn finish(mut self) -> (Instrument, Option<f64>) {
        self.is_over.store(true, Ordering::Relaxed);
        let (mut late, late_pages_percent) =
            self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default();
        let late_ms: Samples = late.iter().map(|us| us / 1000.0).collect();
        let lateness_us = quantiles(&mut late);
        let cpu_ns = cpu_ns().saturating_sub(self.cpu_ns);
        let wall_ns = u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let stolen = |before: ProcessorTicks| Some(ProcessorTicks::now()?.stolen_percent_since(&before));
        let steal_percent = self.ticks.and_then(stolen);
        (
            Instrument { cpu_ns, wall_ns, steal_percent, late_pages_percent, lateness_us },
            late_ms.quantile(0.95),
        )
    }
}

impl Drop for InstrumentWatch {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

fn nap_until(is_over: &AtomicBool) -> (Vec<f64>, Option<f64>) {
    let (mut late, mut pages) = (Vec::new(), PageProbe::new());
    while !is_over.load(Ordering::Relaxed) {
        let asleep = Instant::now();
        std::thread::sleep(NAP);
        late.push(1e6 * asleep.elapsed().saturating_sub(NAP).as_secs_f64());
        pages.touch(PAGES_PER_NAP);
    }
    (late, pages.late_percent())
}

/// Returns the processor time used by this process.
fn cpu_ns() -> u64 {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    now.tv_sec.cast_unsigned() * NANOSECONDS + now.tv_nsec.cast_unsigned()
}
