//! The rest between the warm-up and a share of a processor: a Java machine goes on compiling after its last exchange.

use std::time::{Duration, Instant};

use super::half::RunningHalf;
use crate::runner::testbed::Testbed;
use crate::subject::protocol::SubjectRole;

/// Time between two readings of the processor time.
const WINDOW: Duration = Duration::from_millis(200);
/// The halves rest when they use at most this share of a processor together.
const RESTING_SHARE: f64 = 0.05;
/// Longest wait.
const REST_MAX: Duration = Duration::from_secs(20);

/// Waits until both halves rest, or for [`REST_MAX`].
pub(super) async fn until_halves_rest(testbed: &mut dyn Testbed, server: &RunningHalf, client: &RunningHalf) {
    let halves = [(SubjectRole::Client, client), (SubjectRole::Server, server)];
    let mut used =
        || -> u64 { halves.iter().filter_map(|(role, half)| testbed.usage(*role, &half.host).cpu_ns).sum() };
    let (began, mut before) = (Instant::now(), used());
    while began.elapsed() < REST_MAX {
        tokio::time::sleep(WINDOW).await;
        let now = used();
        if is_rest(now.saturating_sub(before)) {
            return;
        }
        before = now;
    }
}

/// Returns true if so many nanoseconds of processor time in a window are rest.
fn is_rest(used_ns: u64) -> bool {
    used_ns as f64 <= RESTING_SHARE * WINDOW.as_nanos() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_half_that_compiles_with_a_tenth_of_a_processor_does_not_rest() {
        assert!(is_rest(0) && is_rest(10_000_000));
        assert!(!is_rest(20_000_000));
    }
}
