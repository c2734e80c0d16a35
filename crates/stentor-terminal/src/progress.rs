//! Live progress on standard error: a bar on a terminal, a line at intervals elsewhere.

use crate::output::{note, thousands};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::Arc;
use std::time::{Duration, Instant};
use stentor_stage::emulated;
use stentor_stage::reporter::{Phase, Reporter};

/// Interval between lines. Files and pipes keep them: a campaign of an hour leaves 1,800.
const LINE_EVERY: Duration = Duration::from_secs(2);
/// Period of the rate: long enough to hide the steps of a group commit, short enough to show a stop.
const RATE_OVER: Duration = Duration::from_secs(3);
const BAR: &str = "{msg:<12} [{bar:32}] {percent:>3} %  {prefix}";

/// The progress of one phase.
pub struct PhaseProgress {
    bar: ProgressBar,
    name: String,
    total: u64,
    started: Instant,
    recent: Vec<(Instant, u64)>,
    last_line: Option<Instant>,
}

impl PhaseProgress {
    /// Begins a phase of `total` steps.
    pub fn start(name: impl Into<String>, total: u64) -> Self {
        let name = name.into();
        let terminal = std::io::stderr().is_terminal();
        let target = if terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(total.max(1)), target).with_message(name.clone());
        if let Ok(style) = ProgressStyle::with_template(BAR) {
            bar.set_style(style.progress_chars("=> "));
        }
        let last_line = (!terminal).then(Instant::now);
        Self { bar, name, total, started: Instant::now(), recent: Vec::new(), last_line }
    }

    /// Changes the total, if it becomes known during the phase.
    pub fn set_total(&mut self, total: u64) {
        self.total = total;
        self.bar.set_length(total.max(1));
    }

    /// Shows the progress. All numbers are measured; only the time left is extrapolated.
    pub fn update(&mut self, done: u64) {
        self.remember(done);
        let text = describe(done, self.total, self.rate());
        self.bar.set_prefix(text.clone());
        self.bar.set_position(done);
        if self.last_line.is_some_and(|last| last.elapsed() >= LINE_EVERY) {
            self.last_line = Some(Instant::now());
            note(&format!("{}: {text}", self.name));
        }
    }

    /// Shows the progress of long and unequal steps; the caller supplies the text about the rest.
    pub fn update_with(&mut self, done: u64, rest: &str) {
        let text = format!("{} of {}, {rest}", thousands(done), thousands(self.total));
        self.bar.set_prefix(text.clone());
        self.bar.set_position(done);
        if self.last_line.is_some_and(|last| last.elapsed() >= LINE_EVERY) {
            self.last_line = Some(Instant::now());
            note(&format!("{}: {text}", self.name));
        }
    }

    /// Writes a line that stays above the bar.
    pub fn remark(&self, text: &str) {
        self.bar.suspend(|| note(text));
    }

    /// Ends the phase and leaves one line with the amount and the duration.
    pub fn finish(self, done: u64) -> Duration {
        let took = self.started.elapsed();
        self.bar.finish_and_clear();
        if !emulated::is_timed() {
            note(&format!("{}: {}", self.name, thousands(done)));
            return took;
        }
        let rate = done as f64 / took.as_secs_f64().max(1e-9);
        note(&format!(
            "{}: {} in {:.2} s, {}/s",
            self.name,
            thousands(done),
            took.as_secs_f64(),
            thousands(rate as u64)
        ));
        took
    }

    fn remember(&mut self, done: u64) {
        let now = Instant::now();
        self.recent.retain(|(at, _)| now.duration_since(*at) < RATE_OVER);
        self.recent.push((now, done));
    }

    fn rate(&self) -> f64 {
        let (Some((from, before)), Some((to, after))) = (self.recent.first(), self.recent.last()) else {
            return 0.0;
        };
        let seconds = to.duration_since(*from).as_secs_f64();
        if seconds > 0.0 { after.saturating_sub(*before) as f64 / seconds } else { 0.0 }
    }
}

/// Returns a reporter that writes the progress of a stage to standard error.
pub fn on_the_terminal() -> Arc<dyn Reporter> {
    Arc::new(Terminal)
}

/// Writes to standard error.
struct Terminal;

impl Reporter for Terminal {
    fn line(&self, text: &str) {
        note(text);
    }

    fn begin(&self, name: &str, total: u64) -> Box<dyn Phase> {
        Box::new(PhaseProgress::start(name, total))
    }
}

impl Phase for PhaseProgress {
    fn update(&mut self, done: u64) {
        self.update(done);
    }

    fn update_with(&mut self, done: u64, rest: &str) {
        self.update_with(done, rest);
    }

    fn remark(&self, text: &str) {
        self.remark(text);
    }

    fn finish(self: Box<Self>, done: u64) {
        (*self).finish(done);
    }
}

fn describe(done: u64, total: u64, rate: f64) -> String {
    if !emulated::is_timed() {
        return format!("{} of {}", thousands(done), thousands(total));
    }
    let left = match total.saturating_sub(done) {
        rest if rest > 0 && rate >= 1.0 => format!(", {:.0} s left", rest as f64 / rate),
        _ => String::new(),
    };
    format!("{} of {}, {}/s{left}", thousands(done), thousands(total), thousands(rate as u64))
}
