//! Progress of a study: a bar with the remaining time, and a line for each failure.

use stentor_lab::looks::LookFindings;
use stentor_lab::runner::RunEvent;
use stentor_terminal::progress::PhaseProgress;

/// Writes events to standard error.
#[derive(Default)]
pub(super) struct RunReporter {
    bar: Option<PhaseProgress>,
}

impl RunReporter {
    /// Writes one event.
    pub(super) fn report(&mut self, event: &RunEvent<'_>) {
        match event {
            RunEvent::Begun { forks, .. } => self.bar = Some(PhaseProgress::start("forks", *forks)),
            RunEvent::Attempt { done, seconds_left, record } => {
                let Some(bar) = &mut self.bar else { return };
                if !record.valid {
                    let levels: Vec<&str> = record.cell.values().map(String::as_str).collect();
                    bar.remark(&format!(
                        "does not count: {} ({}) {} fork {}, attempt {}: {}",
                        record.subject.label,
                        record.subject.client,
                        levels.join(" "),
                        record.fork,
                        record.attempt,
                        record.invalid_reason
                    ));
                }
                bar.update_with(*done, &format!("{} left", minutes(*seconds_left)));
            }
            RunEvent::Looked { round, findings } => {
                if let Some(bar) = &self.bar {
                    let LookFindings { open, of } = findings;
                    bar.remark(&format!("after round {round}: {open} of {of} comparisons are open"));
                }
            }
            RunEvent::LeftOut(what) => {
                if let Some(bar) = &self.bar {
                    bar.remark(&format!("not run: {}: {}", what.what, what.reason));
                }
            }
        }
    }
}

/// Writes a time in a form for people.
pub(in crate::commands) fn minutes(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 90.0 => format!("{seconds:.0} s"),
        seconds if seconds < 5400.0 => format!("{:.0} min", seconds / 60.0),
        seconds => format!("{:.1} h", seconds / 3600.0),
    }
}
