//! Cells: one combination of levels and subject, and its forks.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::{Metric, joined};
use crate::record::ForkRecord;
use crate::statistics::{Estimate, QuantileEstimate, Replicate, Replicates, Samples, merged, quantile};

/// Factor of the prefix kilo, as in `100Kb`.
const THOUSAND: f64 = 1000.0;
const NANOS_PER_MS: f64 = 1e6;
/// Maximum of samples drawn from a fork. The count in a record is untrusted and may exceed the memory.
const DRAWN_MAX_SAMPLES: u64 = 10_000;

/// One combination of levels and subject, with its valid forks.
#[derive(Debug, Clone)]
pub struct MeasuredCell {
    /// The variant (reading) of the study.
    pub variant: String,
    /// The part of the study.
    pub experiment: String,
    /// The paper's name for the subject.
    pub subject: String,
    /// `period`, or the family of the substitute software.
    pub stack: String,
    /// Id of the client half.
    pub client: String,
    /// Id of the server half.
    pub server: String,
    /// Name of the link's profile.
    pub link: String,
    /// Levels by factor.
    pub levels: BTreeMap<String, String>,
    /// The displayed name of the subject: the shortest one that is unambiguous.
    pub name: String,
    /// Valid forks, the last attempt of each.
    pub forks: Vec<ForkRecord>,
    /// Number of invalid attempts.
    pub invalid: usize,
    /// The ids of the study's runs, in the order of their records.
    pub runs: Vec<String>,
}

/// Runs from which they are the replicates of every figure. With fewer, an interval over runs would be too wide to be of use.
pub(super) const RUNS_MIN: usize = 3;

impl MeasuredCell {
    /// Returns its levels as one text.
    pub(super) fn levels_text(&self) -> String {
        let levels = self.levels.iter().map(|(name, level)| format!("{name}={level}"));
        levels.collect::<Vec<_>>().join(";")
    }

    /// Returns the fields that identify the cell; versions are not among them.
    pub(super) fn identity(&self) -> [String; 8] {
        let Self { experiment, variant, subject, stack, client, server, link, .. } = self;
        let names = [experiment, variant, subject, stack, client, server, link];
        let [experiment, variant, subject, stack, client, server, link] = names.map(String::clone);
        [experiment, variant, subject, stack, client, server, link, self.levels_text()]
    }

    /// Groups records into cells, ordered by experiment, variant, levels and subject.
    pub(super) fn all(records: &[ForkRecord]) -> Vec<Self> {
        let mut cells: Vec<Self> = Vec::new();
        let mut runs: Vec<String> = Vec::new();
        for record in records {
            if !runs.contains(&record.run_id) {
                runs.push(record.run_id.clone());
            }
            let place = cells.iter().position(|cell| cell.holds(record));
            let place = place.unwrap_or_else(|| {
                cells.push(Self::empty(record));
                cells.len() - 1
            });
            cells[place].add(record);
        }
        cells.sort_by(|one, other| one.order(other));
        let names: Vec<String> = cells.iter().map(|cell| cell.shortest_name(&cells)).collect();
        for (cell, name) in cells.iter_mut().zip(names) {
            (cell.name, cell.runs) = (name, runs.clone());
        }
        cells
    }

    fn empty(record: &ForkRecord) -> Self {
        let subject = &record.subject;
        Self {
            variant: record.variant.clone(),
            experiment: record.experiment.clone(),
            subject: subject.label.clone(),
            stack: subject.stack.clone(),
            client: subject.client.clone(),
            server: subject.server.clone(),
            link: record.link.profile.clone(),
            levels: record.cell.clone(),
            name: String::new(),
            forks: Vec::new(),
            invalid: 0,
            runs: Vec::new(),
        }
    }

    fn holds(&self, record: &ForkRecord) -> bool {
        let subject = &record.subject;
        self.variant == record.variant
            && self.experiment == record.experiment
            && self.levels == record.cell
            && self.link == record.link.profile
            && [&self.subject, &self.stack, &self.client, &self.server]
                == [&subject.label, &subject.stack, &subject.client, &subject.server]
    }

    fn add(&mut self, record: &ForkRecord) {
        if !record.valid {
            self.invalid += 1;
            return;
        }
        match self.forks.iter_mut().find(|fork| fork.fork == record.fork && fork.run_id == record.run_id) {
            Some(fork) => *fork = record.clone(),
            None => self.forks.push(record.clone()),
        }
    }

    fn order(&self, other: &Self) -> Ordering {
        self.experiment
            .cmp(&other.experiment)
            .then_with(|| self.variant.cmp(&other.variant))
            .then_with(|| by_levels(&self.levels, &other.levels))
            .then_with(|| self.subject.cmp(&other.subject))
            .then_with(|| self.stack.cmp(&other.stack))
            .then_with(|| self.server.cmp(&other.server))
    }

    /// Returns the paper's name if it is unique in its experiment, else with the stack, else with the server's id.
    fn shortest_name(&self, cells: &[Self]) -> String {
        let base = if self.subject.is_empty() { &self.server } else { &self.subject };
        let is_rival = |cell: &&Self| (&cell.subject, &cell.experiment) == (&self.subject, &self.experiment);
        let rivals = || cells.iter().filter(is_rival);
        let is_same = |cell: &Self| {
            [&cell.stack, &cell.client, &cell.server] == [&self.stack, &self.client, &self.server]
        };
        if rivals().all(is_same) {
            base.clone()
        } else if rivals().filter(|cell| cell.stack == self.stack).all(is_same) {
            format!("{base} ({})", self.stack)
        } else {
            format!("{base} ({})", self.server)
        }
    }

    /// Returns true if the paper's own software, or its kind, ran.
    #[must_use]
    pub fn is_period(&self) -> bool {
        self.stack == "period"
    }

    /// Returns the name of the cell without its subject: experiment, variant and levels.
    #[must_use]
    pub fn place(&self) -> String {
        let levels: Vec<String> = self.levels.iter().map(|(name, level)| format!("{name} {level}")).collect();
        joined(&[&self.experiment, &self.variant, &levels.join(", ")], " · ")
    }

    /// Returns a figure by replicate: of each fork that has it, or of each run if there are [`RUNS_MIN`].
    pub(super) fn replicates(&self, of: impl Fn(&ForkRecord) -> Option<f64>) -> Replicates {
        let values = self.forks.iter().filter_map(|fork| Some((self.replicate(fork), of(fork)?)));
        let by_fork: Replicates = values.collect();
        if self.is_by_run() { by_fork.by_run() } else { by_fork }
    }

    /// Returns true if the study has so many runs that they are the replicates.
    pub(super) fn is_by_run(&self) -> bool {
        self.runs.len() >= RUNS_MIN
    }

    /// Returns the word for its replicates.
    pub(super) fn replicates_word(&self) -> &'static str {
        if self.is_by_run() { "runs" } else { "forks" }
    }

    /// Returns the place of a fork in the study. A fork's number is that of its round.
    pub(super) fn replicate(&self, fork: &ForkRecord) -> Replicate {
        let run = self.runs.iter().position(|run| *run == fork.run_id).unwrap_or_default();
        Replicate { run: u32::try_from(run).unwrap_or(u32::MAX), round: fork.fork }
    }

    /// Returns the values of a metric over the forks, or the runs, that have it.
    #[must_use]
    pub fn samples(&self, metric: &Metric) -> Samples {
        self.replicates(metric.of).samples()
    }

    /// Estimates a metric over the forks.
    #[must_use]
    pub fn estimate(&self, metric: &Metric) -> Option<Estimate> {
        self.samples(metric).estimate(super::CONFIDENCE)
    }

    /// Estimates the metric with this id; `None` if there is none.
    pub(super) fn metric(&self, id: &str) -> Option<Estimate> {
        self.estimate(Metric::find(id)?)
    }

    /// Returns the bytes of the larger body of an exchange, request or response; `None` if none were counted.
    #[must_use]
    pub fn body_bytes(&self) -> Option<f64> {
        let bytes =
            self.forks.iter().find_map(|fork| fork.bytes.as_ref().filter(|bytes| bytes.exchanges > 0))?;
        let larger = bytes.up.app.max(bytes.down.app);
        (larger > 0).then_some(larger as f64 / bytes.exchanges as f64)
    }

    /// Returns true if it ran without valid times, because the processor was emulated.
    #[must_use]
    pub fn is_untimed(&self) -> bool {
        !self.forks.is_empty() && self.forks.iter().all(ForkRecord::is_emulated)
    }

    /// Returns the outcome, unless all forks finished.
    #[must_use]
    pub fn outcome(&self) -> Option<&str> {
        let ended = self.forks.iter().map(|fork| fork.outcome.as_str());
        ended.into_iter().find(|outcome| !outcome.is_empty() && *outcome != "finished")
    }

    /// Counts the forks whose exchanges did not settle, and those that tell.
    #[must_use]
    pub fn unsettled(&self) -> (usize, usize) {
        let told = self.forks.iter().filter_map(|fork| fork.has_settled);
        told.fold((0, 0), |(unsettled, all), has_settled| (unsettled + usize::from(!has_settled), all + 1))
    }

    /// Estimates the quantile `part` of the duration of all exchanges, in milliseconds, where that is known to be sound. The bootstrap
    /// resamples forks first, because exchanges of one process are correlated.
    #[must_use]
    pub fn quantile_ms(&self, part: f64) -> Option<QuantileEstimate> {
        let mut groups: BTreeMap<Replicate, Samples> = BTreeMap::new();
        for fork in &self.forks {
            let Some(histogram) = fork.whole().and_then(|times| times.histogram().ok()) else { continue };
            let replicate = self.replicate(fork);
            let key = if self.is_by_run() { Replicate { round: 0, ..replicate } } else { replicate };
            let samples = groups.entry(key).or_default();
            in_ms(&histogram).values().iter().for_each(|time| samples.push(*time));
        }
        quantile(&groups.into_values().collect::<Vec<_>>(), part, super::CONFIDENCE)
    }

    /// Returns the distribution over the exchanges of all forks, in nanoseconds.
    #[must_use]
    pub fn distribution(&self) -> Option<hdrhistogram::Histogram<u64>> {
        merged(self.forks.iter().filter_map(|fork| fork.whole()?.histogram().ok()))
    }
}

/// Lists the durations of a distribution in milliseconds; above [`DRAWN_MAX_SAMPLES`], that many quantiles at equal steps.
fn in_ms(histogram: &hdrhistogram::Histogram<u64>) -> Samples {
    let count = histogram.len().min(DRAWN_MAX_SAMPLES);
    if count < histogram.len() {
        let share = |place: u64| (place as f64 + 0.5) / count as f64;
        return (0..count)
            .map(|place| histogram.value_at_quantile(share(place)) as f64 / NANOS_PER_MS)
            .collect();
    }
    let steps = histogram.iter_recorded();
    let times = steps.flat_map(|step| {
        std::iter::repeat_n(step.value_iterated_to() as f64 / NANOS_PER_MS, step.count_at_value() as usize)
    });
    times.collect()
}

/// Orders levels of the same factors: words first, then sizes, so that related levels are adjacent. A factor may have both, such as a delay
/// of `0 ms` and the `paper`'s.
fn by_levels(some: &BTreeMap<String, String>, others: &BTreeMap<String, String>) -> Ordering {
    let by = |rank: fn(&str, &str) -> Ordering| {
        let mut pairs = some.values().zip(others.values()).map(|(one, other)| rank(one, other));
        pairs.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    };
    by(by_word).then_with(|| by(by_size))
}

/// Orders levels by size; words come before sizes, in alphabetical order.
pub(super) fn by_size(one: &str, other: &str) -> Ordering {
    match (size(one), size(other)) {
        (Some(first), Some(second)) => first.total_cmp(&second).then_with(|| one.cmp(other)),
        _ => by_word(one, other),
    }
}

/// Orders words alphabetically and before all sizes; sizes are equal among each other.
fn by_word(one: &str, other: &str) -> Ordering {
    let word = |level| (size(level).is_some(), if size(level).is_some() { "" } else { level });
    word(one).cmp(&word(other))
}

/// Parses the number at the start of a level, as in `461`, `100Kb` or `64 B`.
pub(super) fn size(level: &str) -> Option<f64> {
    let end = level.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(level.len());
    let number: f64 = level[..end].parse().ok()?;
    let factor = if level[end..].trim_start().to_ascii_lowercase().starts_with('k') { THOUSAND } else { 1.0 };
    Some(number * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_with_words_and_sizes_in_one_factor_have_one_order() {
        let cell = |delay: &str, payload: &str, tls: &str| {
            let pairs = [("delay", delay), ("payload", payload), ("tls", tls)];
            BTreeMap::from(pairs.map(|(factor, level)| (factor.to_owned(), level.to_owned())))
        };
        let delays = ["paper", "0 ms"].into_iter();
        let pairs = delays.flat_map(|delay| ["64 B", "256 B"].map(|payload| (delay, payload)));
        let cells: Vec<_> =
            pairs.flat_map(|(delay, payload)| ["off", "on"].map(|tls| cell(delay, payload, tls))).collect();
        for (one, other) in cells.iter().flat_map(|one| cells.iter().map(move |other| (one, other))) {
            assert_eq!(by_levels(one, other), by_levels(other, one).reverse(), "{one:?} and {other:?}");
            for third in &cells {
                let is_between = by_levels(one, other).is_le() && by_levels(other, third).is_le();
                assert!(!is_between || by_levels(one, third).is_le(), "{one:?}, {other:?}, {third:?}");
            }
        }
    }

    #[test]
    fn a_distribution_that_claims_more_samples_than_memory_holds_is_thinned() {
        let mut histogram = hdrhistogram::Histogram::<u64>::new(3).expect("three digits");
        histogram.record_n(1_000_000, 3 << 40).expect("in range");
        histogram.record_n(9_000_000, 1 << 40).expect("in range");
        let thinned = in_ms(&histogram);
        assert_eq!(thinned.values().len() as u64, DRAWN_MAX_SAMPLES);
        let short = thinned.values().iter().filter(|ms| **ms < 2.0).count();
        assert_eq!(short as u64, DRAWN_MAX_SAMPLES / 4 * 3);
    }
}
