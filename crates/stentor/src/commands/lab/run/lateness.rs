//! How late this machine wakes who sleeps: where others hold the processors, every time that is measured is wrong.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use stentor_lab::statistics::Samples;

const NAP: Duration = Duration::from_millis(5);
/// So late in one case of 20, and a run does not count: the push services' answers take about 35 ms.
const LATE_MAX_MS: f64 = 15.0;

/// A thread that sleeps and looks at the clock; it ends with this.
pub(super) struct Lateness {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Samples>>,
}

impl Lateness {
    /// Begins.
    pub(super) fn watch() -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&is_over);
        Self { is_over, thread: Some(std::thread::spawn(move || sleep_until(&flag))) }
    }

    /// Ends, and returns how late it was woken in the worst of 20 cases, in milliseconds.
    pub(super) fn finish(mut self) -> Option<f64> {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.take()?.join().ok()?.quantile(0.95)
    }
}

impl Drop for Lateness {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// Returns why a run does not count, or nothing.
pub(super) fn verdict(late_ms: Option<f64>) -> String {
    match late_ms {
        Some(late) if late > LATE_MAX_MS => {
            format!("the machine was busy: in one case of 20 a sleeper was woken {late:.0} ms late or more")
        }
        _ => String::new(),
    }
}

fn sleep_until(is_over: &AtomicBool) -> Samples {
    let mut late = Samples::default();
    while !is_over.load(Ordering::Relaxed) {
        let asleep = Instant::now();
        std::thread::sleep(NAP);
        late.push(1000.0 * asleep.elapsed().saturating_sub(NAP).as_secs_f64());
    }
    late
}

#[cfg(test)]
mod tests {
    use super::verdict;

    #[test]
    fn a_busy_machine_makes_a_run_not_count() {
        assert_eq!((verdict(None), verdict(Some(2.0))), (String::new(), String::new()));
        assert!(verdict(Some(40.0)).contains("40 ms"));
    }
}
