//! Where others hold the processors, every time that is measured is wrong.

/// So late in one case of 20, and a run does not count: the push services' answers take about 35 ms.
const LATE_MAX_MS: f64 = 15.0;

/// Returns why a run does not count, or nothing.
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
