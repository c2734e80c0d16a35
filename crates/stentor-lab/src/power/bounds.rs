//! What the chosen method must keep: its level, and a least power.

use super::{LookedCell, PowerCell, VerdictMethod, level};

/// Standard errors of a share by which a simulation may miss: with so many, chance misses one share of thousands.
const ERRORS_ALLOWED: f64 = 4.0;
/// Sides on which a method can decide. A difference at the edge of the band can be overrated on one of them, so half of the level is its size.
const SIDES: f64 = 2.0;
/// The claims of a study for which power is bounded.
const CLAIMS_BOUNDED: usize = 13;

/// The least share of studies that the chosen method decides.
struct PowerBound {
    forks: usize,
    true_ratio: f64,
    /// With nothing in common between both sides of a round.
    of_separate_sides: f64,
    /// With rounds that differ.
    of_differing_rounds: f64,
}

impl PowerBound {
    const fn new(forks: usize, true_ratio: f64, of_separate_sides: f64, of_differing_rounds: f64) -> Self {
        Self { forks, true_ratio, of_separate_sides, of_differing_rounds }
    }
}

/// The bounds of the power.
const BOUNDS: [PowerBound; 6] = [
    PowerBound::new(3, 1.3, 0.35, 0.12),
    PowerBound::new(4, 1.3, 0.85, 0.47),
    PowerBound::new(6, 1.3, 0.97, 0.97),
    PowerBound::new(10, 1.3, 0.999, 0.999),
    PowerBound::new(10, 1.1, 0.17, 0.17),
    PowerBound::new(30, 1.1, 0.88, 0.88),
];

/// Lists what the chosen method misses.
pub(super) fn objections(cells: &[PowerCell], chosen: VerdictMethod) -> Vec<String> {
    let cells = cells.iter().filter(|cell| cell.method == chosen);
    cells.flat_map(|cell| [too_often_wrong(cell), too_weak(cell)]).flatten().collect()
}

/// Lists the runs with looks that are wrong too often, in their decisions or in what they exclude.
pub(super) fn objections_to_looks(cells: &[LookedCell]) -> Vec<String> {
    let of_cell = |cell: &LookedCell| {
        let size = level(cell.claims) / SIDES;
        let most = size + ERRORS_ALLOWED * error(size, cell.studies);
        let shares = [("wrong", cell.wrong), ("excluded wrongly", cell.excluded_wrongly)];
        let (claims, true_ratio, round_sd) = (cell.claims, cell.true_ratio, cell.round_sd);
        shares.into_iter().filter(move |(_, share)| *share > most).map(move |(what, share)| {
            format!(
                "a run with looks, a true ratio of {true_ratio}, a round's sd of {round_sd} and {claims} claims: {what} in {share:.4}, \
                 at most {most:.4}"
            )
        })
    };
    cells.iter().flat_map(of_cell).collect()
}

/// Objects to a method that is wrong more often than its level and chance allow.
fn too_often_wrong(cell: &PowerCell) -> Option<String> {
    let size = level(cell.claims) / SIDES;
    let most = size + ERRORS_ALLOWED * error(size, cell.studies);
    (cell.wrong > most).then(|| format!("{}: wrong in {:.4}, at most {most:.4}", named(cell), cell.wrong))
}

/// Objects to a method that decides less often than its bound and chance allow.
fn too_weak(cell: &PowerCell) -> Option<String> {
    if cell.claims != CLAIMS_BOUNDED {
        return None;
    }
    let is_of = |bound: &&PowerBound| bound.forks == cell.forks && bound.true_ratio == cell.true_ratio;
    let bound = BOUNDS.iter().find(is_of)?;
    let bound = if cell.round_sd > 0.0 { bound.of_differing_rounds } else { bound.of_separate_sides };
    let least = bound - ERRORS_ALLOWED * error(bound, cell.studies);
    (cell.decided < least)
        .then(|| format!("{}: decided in {:.4}, at least {least:.4}", named(cell), cell.decided))
}

/// Returns the standard error of a share.
fn error(share: f64, studies: usize) -> f64 {
    (share * (1.0 - share) / studies.max(1) as f64).sqrt()
}

fn named(cell: &PowerCell) -> String {
    format!(
        "{} with {} forks, a true ratio of {}, a round's sd of {} and {} claims",
        cell.method, cell.forks, cell.true_ratio, cell.round_sd, cell.claims
    )
}
