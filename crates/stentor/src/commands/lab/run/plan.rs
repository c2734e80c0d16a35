//! What is to be run in which order, and how long that will take.

use std::time::{Duration, Instant};
use stentor_lab::order::rounds;
use stentor_lab::report::Row;
use stentor_lab::study::{Cell, Study};

/// Runs that are still to be made.
pub(super) struct Plan {
    left: Vec<Step>,
    made: usize,
    count: usize,
    /// What was expected of the runs that were made, in seconds.
    expected_made: f64,
    started: Instant,
}

/// One run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Step {
    /// The place of its cell.
    pub(super) cell: usize,
    /// Which of the repetitions, from 1.
    pub(super) repetition: u32,
    expected_seconds: f64,
}

impl Plan {
    /// Mixes the cells of every round; what is there already is not made again.
    pub(super) fn make(
        study: &Study,
        scale: f64,
        cells: &[Cell],
        repetitions: u32,
        seed: u64,
        there: &[Row],
    ) -> Self {
        let is_there = |cell: &Cell, repetition| {
            there.iter().any(|row| row.id == cell.id && row.repetition == repetition)
        };
        let expected = |cell: &Cell| cell.expected_seconds(study.provider, study.pushes(cell.mix, scale));
        let order = rounds(cells.len(), repetitions, seed).into_iter();
        let steps = order.filter(|(cell, repetition)| !is_there(&cells[*cell], *repetition));
        let mut left: Vec<Step> = steps
            .map(|(cell, repetition)| Step { cell, repetition, expected_seconds: expected(&cells[cell]) })
            .collect();
        left.reverse();
        Self { count: left.len(), left, made: 0, expected_made: 0.0, started: Instant::now() }
    }

    /// Returns the next run.
    pub(super) fn next(&mut self) -> Option<Step> {
        self.left.pop()
    }

    /// Notes that a run is over and returns how far all is.
    pub(super) fn done(&mut self, step: Step) -> String {
        self.made += 1;
        self.expected_made += step.expected_seconds;
        let expected_left: f64 = self.left.iter().map(|step| step.expected_seconds).sum();
        let left = time_left(self.started.elapsed(), self.expected_made, expected_left);
        format!("{} of {} runs, {left}", self.made, self.count)
    }
}

/// Returns how long the rest will take when expectations go on to be as wrong as they were.
fn time_left(elapsed: Duration, expected_made: f64, expected_left: f64) -> String {
    let seconds = elapsed.as_secs_f64() * expected_left / expected_made.max(1e-9);
    match seconds {
        seconds if seconds <= 0.0 => "done".to_owned(),
        seconds if seconds < 90.0 => format!("about {seconds:.0} s left"),
        seconds => format!("about {:.0} min left", seconds / 60.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_took_twice_as_long_as_expected_is_expected_to_go_on_so() {
        let elapsed = Duration::from_secs(20);
        assert_eq!(time_left(elapsed, 10.0, 30.0), "about 60 s left");
        assert_eq!(time_left(elapsed, 10.0, 300.0), "about 10 min left");
        assert_eq!(time_left(elapsed, 10.0, 0.0), "done");
    }

    #[test]
    fn what_is_there_is_not_made_again() {
        let study = Study::isikligil_2017().unwrap();
        let cells: Vec<Cell> = study.scenarios.iter().map(stentor_lab::study::Scenario::cell).collect();
        let there = Row { id: "T3".to_owned(), repetition: 2, ..Row::default() };
        let mut plan = Plan::make(&study, 0.01, &cells, 2, 7, &[there]);
        let steps: Vec<Step> = std::iter::from_fn(|| plan.next()).collect();
        assert_eq!(steps.len(), 25);
        assert!(steps.iter().all(|step| (cells[step.cell].id.as_str(), step.repetition) != ("T3", 2)));
    }
}
