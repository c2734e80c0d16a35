//! Progress reports of long operations: lines, and the progress of a phase. The caller decides how to present them.

/// Receives progress reports.
pub trait Reporter: Send + Sync {
    /// Receives a line.
    fn line(&self, text: &str);

    /// Begins a phase of `total` steps.
    fn begin(&self, name: &str, total: u64) -> Box<dyn Phase>;
}

/// Receives the progress of a phase.
pub trait Phase: Send {
    /// Receives the number of finished steps.
    fn update(&mut self, done: u64);

    /// Receives the number of finished steps where steps are long and unequal, with a description of the rest.
    fn update_with(&mut self, done: u64, rest: &str);

    /// Receives a remark about an event within the phase.
    fn remark(&self, text: &str);

    /// Ends the phase after `done` steps.
    fn finish(self: Box<Self>, done: u64);
}
