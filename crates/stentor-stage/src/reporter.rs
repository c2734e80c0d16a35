//! What is told while something goes on: lines, and how far a phase is. Who asked decides what becomes of it.

/// Receives what is told on the way.
pub trait Reporter: Send + Sync {
    /// Receives a line.
    fn line(&self, text: &str);

    /// Begins a phase of `total` steps.
    fn begin(&self, name: &str, total: u64) -> Box<dyn Phase>;
}

/// Receives how far a phase is.
pub trait Phase: Send {
    /// Receives how many steps are done.
    fn update(&mut self, done: u64);

    /// Receives how many steps are done where steps are long and unequal, with a word about the rest.
    fn update_with(&mut self, done: u64, rest: &str);

    /// Receives a line about what happened in between.
    fn remark(&self, text: &str);

    /// Ends the phase after so many steps.
    fn finish(self: Box<Self>, done: u64);
}
