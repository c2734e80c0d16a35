//! Hours of the paper's battery by cell, by a model of the radio.

use super::columns::{estimate_text, number_text, of_cells};
use super::{CONFIDENCE, MeasuredCell, Results};
use crate::document::TextTable;
use crate::record::ForkRecord;
use crate::statistics::Samples;

/// The table; empty without exchanges that were repeated until a battery was empty. Hours of older versions, which have no band, are left
/// out: the client's processor is in them.
pub(super) fn batteries(results: &Results) -> TextTable {
    let is_known = |cell: &&MeasuredCell| hours(cell, |fork| fork.battery_hours).quantile(0.5).is_some();
    let band = |cell: &MeasuredCell| {
        let end = |place: usize| hours(cell, |fork| Some(fork.battery_band?[place]));
        [end(0), end(1)].map(|ends| number_text(ends.estimate(CONFIDENCE).map(|one| one.mean))).join(" to ")
    };
    of_cells(
        results,
        results.cells.iter().filter(is_known),
        &[
            ("hours [95 %]", &|cell| {
                estimate_text(hours(cell, |fork| fork.battery_hours).estimate(CONFIDENCE))
            }),
            ("hours with all coefficients high, and low", &band),
        ],
    )
}

fn hours(cell: &MeasuredCell, of: impl Fn(&ForkRecord) -> Option<f64>) -> Samples {
    cell.replicates(|fork| fork.battery_band.and_then(|_| of(fork))).samples()
}

#[cfg(test)]
mod tests {
    use super::super::tests::record;
    use super::*;
    use crate::record::BATTERY_BY_EXCHANGE;
    use crate::statistics::invented::Invented;

    #[test]
    fn each_cell_has_its_hours_and_their_band_and_hours_without_one_have_no_row() {
        let table = |battery_band| {
            let forks = (1..=3).map(|fork| ForkRecord {
                battery_hours: Some(108.0),
                battery_band,
                battery_cut: BATTERY_BY_EXCHANGE.to_owned(),
                ..record("GCM", "", "64", fork, 5.0, &mut Invented::new(u64::from(fork)))
            });
            batteries(&Results::of(forks.collect()).expect("records"))
        };
        let rows = table(Some([98.0, 129.0])).rows;
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0][2..], ["GCM", "108 [108, 108]", "98 to 129"]);
        assert!(table(None).rows.is_empty());
    }
}
