//! Texts from devices on autopush's WebSocket: each line is a frame; none panics, and nothing happens before the hello.
#![no_main]
use libfuzzer_sys::fuzz_target;
use stentor_core::time::Timestamp;
use stentor_gateway::autopush::{AutopushState, AutopushStep};

fuzz_target!(|text: &str| {
    let mut state = AutopushState::default();
    for (index, line) in text.lines().enumerate() {
        let had_greeted = state.has_greeted();
        let steps = state.take(line, Timestamp::from_millis(index as i64 * 10_000));
        let is_quiet = |step: &AutopushStep| matches!(step, AutopushStep::Close(_) | AutopushStep::Identify(_));
        assert!(had_greeted || steps.iter().all(is_quiet), "{steps:?}");
    }
});
