//! Restrictions on an emulated processor: times are neither measured nor reported there, because they say nothing about any processor.

use crate::failure::{CommandFailure, Exit};
use std::sync::LazyLock;
use std::time::Duration;
use stentor_machine::emulation;

/// The evidence of an emulated processor, looked up once.
static WHY: LazyLock<Option<String>> = LazyLock::new(emulation::here);

/// Returns the evidence of an emulated processor; `None` without any.
pub fn why() -> Option<&'static str> {
    WHY.as_deref()
}

/// Returns true if times may be reported.
pub fn is_timed() -> bool {
    why().is_none()
}

/// Fails on an emulated processor. For commands that only measure times.
pub fn refuse() -> anyhow::Result<()> {
    judged(why()).map_err(anyhow::Error::from)
}

fn judged(why: Option<&str>) -> Result<(), CommandFailure> {
    let sentence = |why| format!("this processor is emulated ({why}): nothing is timed here");
    why.map_or(Ok(()), |why| Err(CommandFailure::new(Exit::NotTestable, sentence(why))))
}

/// Formats a time with a prefix, or returns an empty text if times are not reported.
pub fn elapsed_text(before: &str, took: Duration) -> String {
    if is_timed() { format!("{before}{:.2} s", took.as_secs_f64()) } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_emulated_processor_refuses_what_is_timed_with_a_code_of_its_own() {
        assert!(judged(None).is_ok());
        let refused = judged(Some("built for aarch64")).expect_err("refused");
        assert_eq!(refused.exit, Exit::NotTestable);
        let sentence = "this processor is emulated (built for aarch64): nothing is timed here";
        assert_eq!(refused.to_string(), sentence);
    }
}
