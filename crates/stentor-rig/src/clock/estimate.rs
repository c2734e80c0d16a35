//! Estimates of the offset between two clocks from queries: by the paper's mean, and by the shortest round trips.

use super::sntp::Stamps;
use serde::Serialize;

/// Queries with the shortest round trips that are believed.
pub const BELIEVED: usize = 5;

/// An offset at an instant of the asker's clock.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Anchor {
    /// The instant by the querying clock, in nanoseconds.
    pub at_ns: f64,
    /// The offset by which the answering clock is ahead, in nanoseconds.
    pub offset_ns: f64,
    /// The maximum distance of the true offset, in nanoseconds: half of the longest round trip that was believed.
    pub bound_ns: f64,
}

/// The mean of all offsets, each of time stamps in whole milliseconds, as albertengo-2020 describes it. It has no bound: it contains half
/// of the difference between both ways.
#[must_use]
pub fn papers_mean_ns(queries: &[Stamps]) -> Option<f64> {
    mean(queries.iter().map(|stamps| stamps.in_whole_ms().offset_ns()))
}

/// The mean offset of the queries with the shortest round trips, which are disturbed least.
#[must_use]
pub fn by_shortest(queries: &[Stamps]) -> Option<Anchor> {
    let mut shortest: Vec<&Stamps> = queries.iter().collect();
    shortest.sort_by_key(|stamps| stamps.round_trip_ns());
    shortest.truncate(BELIEVED);
    let longest = shortest.last()?.round_trip_ns();
    let middle = |stamps: &&Stamps| (stamps.asked_ns as f64 + stamps.known_ns as f64) / 2.0;
    Some(Anchor {
        at_ns: mean(shortest.iter().map(middle))?,
        offset_ns: mean(shortest.iter().map(|stamps| stamps.offset_ns()))?,
        bound_ns: longest as f64 / 2.0,
    })
}

/// Two anchors, before and after, and a steady drift between them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DriftEstimate {
    /// Before a block of messages.
    pub before: Anchor,
    /// After it.
    pub after: Anchor,
}

impl DriftEstimate {
    /// The offset at an instant of the asker's clock, in nanoseconds.
    #[must_use]
    pub fn offset_ns(&self, at_ns: f64) -> f64 {
        let span = self.after.at_ns - self.before.at_ns;
        let share = if span > 0.0 { (at_ns - self.before.at_ns) / span } else { 0.0 };
        self.before.offset_ns + share * (self.after.offset_ns - self.before.offset_ns)
    }

    /// The maximum error between the anchors, in nanoseconds.
    #[must_use]
    pub const fn bound_ns(&self) -> f64 {
        self.before.bound_ns.max(self.after.bound_ns)
    }

    /// The rate by which the answering clock runs faster, in parts per billion.
    #[must_use]
    pub fn drift_ppb(&self) -> f64 {
        let span = self.after.at_ns - self.before.at_ns;
        (self.after.offset_ns - self.before.offset_ns) / span.max(1.0) * 1e9
    }
}

pub(super) fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0_u32), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

#[cfg(test)]
mod tests;
