//! The factor of interruptions: the link is cut half way, the client is killed, or both.

use crate::plan::Cell;

/// The factor, and its levels.
const FACTOR: &str = "interruption";
const NOTHING: &str = "none";
const CUT: &str = "cut";
const KILLED: &str = "killed";
const CUT_AND_KILLED: &str = "cut and killed";

/// The events in the middle of a client's synchronisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Interruption {
    /// The link is cut for two seconds.
    pub(super) cuts: bool,
    /// The client is killed, and restarted when the link is up again.
    pub(super) kills: bool,
}

impl Interruption {
    /// Reads a cell's factor; `None` where it has none.
    pub(super) fn of(cell: &Cell) -> Option<Self> {
        let (cuts, kills) = match cell.settings.get(FACTOR)?.as_str() {
            NOTHING => (false, false),
            CUT => (true, false),
            KILLED => (false, true),
            CUT_AND_KILLED => (true, true),
            _ => return None,
        };
        Some(Self { cuts, kills })
    }

    pub(super) const fn is_none(self) -> bool {
        !self.cuts && !self.kills
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{PlanChoice, RunProfile};

    #[test]
    fn levels_of_the_factor_are_read_and_others_are_none() {
        let plan = crate::plan::StudyPlan::shipped("anacleto-2012").expect("readable").expect("there");
        let roster = crate::runner::roster::ours(&["stentor".to_owned()]);
        let choice = PlanChoice { profile: RunProfile::Standard, ..PlanChoice::default() };
        let cells = plan.expand(&choice, &roster).expect("sense").cells;
        let interruptions: std::collections::BTreeSet<(String, bool, bool)> = cells
            .iter()
            .filter_map(|cell| {
                Interruption::of(cell).map(|one| (cell.levels[FACTOR].clone(), one.cuts, one.kills))
            })
            .collect();
        let expected = [
            (CUT, true, false),
            (CUT_AND_KILLED, true, true),
            (KILLED, false, true),
            (NOTHING, false, false),
        ];
        assert_eq!(
            interruptions,
            expected.map(|(level, cuts, kills)| (level.to_owned(), cuts, kills)).into()
        );
        assert!(
            cells
                .iter()
                .any(|cell| cell.op == crate::subject::reference::Op::Points
                    && Interruption::of(cell).is_none())
        );
    }
}
