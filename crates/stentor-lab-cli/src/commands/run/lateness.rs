//! Validity of runs: every measured time is wrong if other processes occupy the processors.

/// Limit of the 95th percentile of lateness. A run beyond it does not count, because the push services' answers take only about 35 ms.
const LATE_MAX_MS: f64 = 15.0;

/// Returns the reason for which a run does not count; empty if it counts.
pub(super) fn verdict(late_ms: Option<f64>) -> String {
    match late_ms {
        Some(late) if late > LATE_MAX_MS => {
            format!("the machine was busy: in one case of 20 a sleeper was woken {late:.0} ms late or more")
        }
        _ => String::new(),
    }
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
