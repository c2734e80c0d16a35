//! The gate: limits on the conditions of a fork, beyond which the fork is invalid.

use crate::plan::RunProfile;
use crate::record::{ForkRecord, RecordedLink, phase};

/// Nanoseconds of a millisecond.
const NS_PER_MS: f64 = 1e6;

/// Microseconds of a millisecond, and nanoseconds of a microsecond.
const US_PER_MS: f64 = 1000.0;
const NS_PER_US: f64 = 1000.0;

/// The limits. If one is exceeded, it is reported as the reason.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ValidityLimits {
    /// Load average over a minute, per processor.
    pub load_per_core_max: f64,
    /// 99th percentile of wake-up lateness, in microseconds.
    pub lateness_p99_max_us: f64,
    /// The same, as a share of the median exchange.
    pub lateness_share_max: f64,
    /// Wake-up lateness that always passes, in microseconds: so long may two busy processors take.
    pub lateness_p99_usual_us: f64,
    /// 99th percentile of the lateness of frames leaving the link, in microseconds.
    pub link_p99_max_us: f64,
    /// The same, as a share of the median exchange.
    pub link_share_max: f64,
    /// Lateness of wake-ups and frames that always passes, as a share of the median exchange.
    pub usual_share: f64,
    /// Error bound of the clock comparison, as a share of the one-way delay.
    pub clock_bound_share_max: f64,
    /// Share of frames that queues may drop.
    pub drops_share_max: f64,
    /// Pages touched once a second that may come back late, in percent.
    pub late_pages_percent_max: f64,
    /// Attempts at a fork.
    pub attempts_max: u32,
}

impl Default for ValidityLimits {
    /// Load 2 per processor, wake-ups 20 ms late or as late as an exchange takes, frames 5 ms late or a tenth of an exchange (a hundredth of
    /// it passes always), one frame of 1,000 dropped, clock error of a tenth of the one-way delay, one page of 20 back late; three attempts.
    fn default() -> Self {
        Self {
            load_per_core_max: 2.0,
            lateness_p99_max_us: 20_000.0,
            lateness_share_max: 1.0,
            lateness_p99_usual_us: 5_000.0,
            link_p99_max_us: 5_000.0,
            link_share_max: 0.1,
            usual_share: 0.01,
            clock_bound_share_max: 0.1,
            drops_share_max: 0.001,
            late_pages_percent_max: 5.0,
            attempts_max: 3,
        }
    }
}

impl ValidityLimits {
    /// Returns the limits of a profile. In the quick one, which decides nothing, frames may be late by a quarter of an exchange, and any
    /// page may be.
    #[must_use]
    pub fn of(profile: RunProfile) -> Self {
        let usual = Self::default();
        match profile {
            RunProfile::Quick => Self { link_share_max: 0.25, late_pages_percent_max: 100.0, ..usual },
            RunProfile::Standard | RunProfile::Full => usual,
        }
    }

    /// Returns the reason for an invalid fork; `None` for a valid one.
    #[must_use]
    pub fn reason(&self, record: &ForkRecord) -> Option<String> {
        let of_exchanges = self.of_exchanges(record);
        if record.is_emulated() {
            // On an emulated processor lateness is irrelevant, because no times are kept.
            return of_exchanges;
        }
        of_exchanges
            .or_else(|| self.of_machine(record))
            .or_else(|| self.of_link(record))
            .or_else(|| self.of_clock(record))
    }

    /// Checks the error bound of two clocks against the one-way delay. A shared clock has no error bound.
    fn of_clock(&self, record: &ForkRecord) -> Option<String> {
        let bound = record.clock.as_ref()?.bound_ns;
        let delay = record.latency.get(phase::OWD)?.p50;
        let share = bound as f64 / delay.max(1) as f64;
        (share > self.clock_bound_share_max).then(|| {
            let (bound, delay) = (bound as f64 / NS_PER_MS, delay as f64 / NS_PER_MS);
            let most = 100.0 * self.clock_bound_share_max;
            format!(
                "the clocks may be {bound:.3} ms apart, at a one-way delay of {delay:.3} ms; {most} % at most"
            )
        })
    }

    fn of_exchanges(&self, record: &ForkRecord) -> Option<String> {
        let counts = &record.counts;
        let failed: u64 = counts.errors.values().sum();
        if failed > 0 {
            return Some(format!("{failed} of {} exchanges failed", counts.sent));
        }
        (counts.ok < counts.sent).then(|| format!("{} of {} exchanges were answered", counts.ok, counts.sent))
    }

    fn of_machine(&self, record: &ForkRecord) -> Option<String> {
        let (env, late) = (&record.env, record.instrument.lateness_us.p99);
        let load = env.load_before.max(env.load_after) / f64::from(env.cores.max(1));
        if load > self.load_per_core_max {
            let most = self.load_per_core_max;
            return Some(format!("the machine was busy: load {load:.1} for each processor, {most} at most"));
        }
        let most = exchange_us(record).map_or(self.lateness_p99_max_us, |time| {
            let most = (self.lateness_share_max * time).max(self.lateness_p99_usual_us);
            most.min(self.lateness_p99_max_us).max(self.usual_share * time)
        });
        if late > most {
            let (late, most) = (late / US_PER_MS, most / US_PER_MS);
            return Some(format!(
                "the machine was busy: a sleeper was woken {late:.0} ms late, {most:.1} ms at most"
            ));
        }
        let late = record.instrument.late_pages_percent.unwrap_or(0.0);
        let most = self.late_pages_percent_max;
        (late > most).then(|| {
            format!(
                "the host took memory away: {late:.1} % of touched pages came back late, {most:.1} % at most"
            )
        })
    }

    fn of_link(&self, record: &ForkRecord) -> Option<String> {
        let link = &record.link;
        let most = exchange_us(record).map_or(self.link_p99_max_us, |time| {
            (self.link_share_max * time).min(self.link_p99_max_us).max(self.usual_share * time)
        });
        self.of_one_link(link, most).or_else(|| self.of_one_link(link.behind.as_deref()?, most))
    }

    fn of_one_link(&self, link: &RecordedLink, most: f64) -> Option<String> {
        let late = link.lateness_us.map_or(0.0, |lateness| lateness.p99);
        if late > most {
            let (late, most) = (late / US_PER_MS, most / US_PER_MS);
            return Some(format!("the link was late: frames by {late:.2} ms, {most:.2} ms at most"));
        }
        let share = link.drops as f64 / link.frames.max(1) as f64;
        let is_lossy = link.drops > 0 && share > self.drops_share_max;
        is_lossy.then(|| format!("the link dropped {} of {} frames", link.drops, link.frames))
    }
}

/// Returns the median of whole exchanges, against which lateness is judged; `None` without times.
fn exchange_us(record: &ForkRecord) -> Option<f64> {
    record.whole().map(|times| times.p50 as f64 / NS_PER_US)
}
