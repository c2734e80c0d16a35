//! The shortest recent latency of a response: the round trip without any queue.

use std::time::Duration;

use parking_lot::Mutex;

/// Minimum lifetime of an observation; the maximum is twice as long.
const SPAN: Duration = Duration::from_secs(5);

/// The shortest latencies of the current span and of the previous one.
#[derive(Debug, Default)]
pub(crate) struct Latency(Mutex<Spans>);

#[derive(Debug, Default)]
struct Spans {
    began: Duration,
    running: Option<Duration>,
    before: Option<Duration>,
}

impl Latency {
    /// Records the latency of a response; `now` is any running time.
    pub(crate) fn note(&self, took: Duration, now: Duration) {
        let mut spans = self.0.lock();
        if now.saturating_sub(spans.began) >= SPAN {
            // The previous span still counts; otherwise each new span would begin without a value.
            (spans.began, spans.before) = (now, spans.running.take());
        }
        spans.running = Some(spans.running.map_or(took, |least| least.min(took)));
    }

    /// Returns the shortest recent latency; zero before the first response.
    pub(crate) fn min_rtt(&self) -> Duration {
        let spans = self.0.lock();
        spans.running.into_iter().chain(spans.before).min().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn the_shortest_of_the_last_seconds_counts() {
        let latency = Latency::default();
        assert_eq!(latency.min_rtt(), Duration::ZERO);
        [(80, 0), (50, 10), (70, 20)].into_iter().for_each(|(took, now)| latency.note(ms(took), ms(now)));
        assert_eq!(latency.min_rtt(), ms(50));
    }

    #[test]
    fn a_way_that_became_longer_is_believed_after_two_spans() {
        let latency = Latency::default();
        latency.note(ms(5), ms(0));
        latency.note(ms(90), ms(5_000));
        assert_eq!(latency.min_rtt(), ms(5));
        latency.note(ms(95), ms(10_000));
        assert_eq!(latency.min_rtt(), ms(90));
    }
}
