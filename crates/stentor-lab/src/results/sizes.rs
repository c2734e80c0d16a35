//! The sizes of a study's files beside the paper's, with the difference.

use super::Results;
use crate::claims::figures::{Figure, FigureValue};
use crate::document::TextTable;
use crate::plot::short;
use crate::subject::SERVED_STACK;

/// Tolerance within which a size counts as the paper's.
const TOLERANCE_PERCENT: f64 = 5.0;
/// Bytes of the papers' kB.
const KB: f64 = 1000.0;
/// The paper's name of each format, and the subject that uses it.
const FORMATS: [(&str, &str); 3] =
    [("XML", "HTTP XML SAX"), ("JSON", "HTTP JSON"), ("ProtocolBuffers", "HTTP PROBUF")];
/// The factor that determines the size, and below the factor of exchanges that transfer a part only.
const FACTOR: &str = "poi";
const PART: &str = "page";

/// The table; empty if the study's paper has no sizes.
pub(super) fn sizes(results: &Results) -> TextTable {
    let figures = results.dossier.iter().flat_map(|dossier| dossier.figures().iter());
    let rows = figures.filter_map(|figure| row(results, figure));
    TextTable::new(["points", "format", "the paper, kB", "here, kB", "difference"], rows)
}

fn row(results: &Results, figure: &Figure) -> Option<[String; 5]> {
    let FigureValue::Number(paper) = &figure.value else { return None };
    let is_size = figure.metric == "file size" && figure.kind == "published";
    let level = figure.factors.get(FACTOR).filter(|_| is_size)?;
    let (_, subject) = FORMATS.iter().find(|(format, _)| *format == figure.subject)?;
    let ours = body_kb(results, subject, level)?;
    let percent = 100.0 * (ours / paper.value - 1.0);
    let remark = if percent.abs() <= TOLERANCE_PERCENT { "" } else { ", more than 5 %" };
    Some([
        level.clone(),
        figure.subject.clone(),
        short(paper.value),
        short(ours),
        format!("{percent:+.1} %{remark}"),
    ])
}

/// Returns the size of a whole response; excludes the project's own server, because its data are not the paper's files.
fn body_kb(results: &Results, subject: &str, level: &str) -> Option<f64> {
    let is_here = |cell: &&super::MeasuredCell| {
        cell.subject == subject
            && cell.stack != SERVED_STACK
            && cell.levels.get(FACTOR).is_some_and(|one| one == level)
            && !cell.levels.contains_key(PART)
    };
    let forks = results.cells.iter().filter(is_here).flat_map(|cell| &cell.forks);
    let mut bytes = forks.filter_map(|fork| fork.bytes.as_ref());
    let bytes = bytes.find(|bytes| bytes.exchanges > 0 && bytes.down.app > 0)?;
    Some(bytes.down.app as f64 / bytes.exchanges as f64 / KB)
}

#[cfg(test)]
mod tests {
    use super::super::tests::record;
    use super::*;
    use crate::statistics::invented::Invented;

    fn synchronised(kb: f64) -> Results {
        let mut record = record("HTTP JSON", "Int", "250", 1, 5.0, &mut Invented::new(1));
        record.study = "anacleto-2012".into();
        record.cell = [(FACTOR.to_owned(), "250".to_owned())].into();
        let bytes = record.bytes.as_mut().expect("counted");
        bytes.down.app = (kb * KB) as u64 * bytes.exchanges;
        Results::of(vec![record]).expect("one study")
    }

    #[test]
    fn a_size_is_told_beside_the_papers_with_its_distance() {
        // Table 1 of the paper has 227 kB.
        let rows = sizes(&synchronised(229.0)).rows;
        assert_eq!(rows, [["250", "JSON", "227", "229", "+0.9 %"].map(str::to_owned).to_vec()]);
    }

    #[test]
    fn a_size_that_is_too_far_off_says_so() {
        let rows = sizes(&synchronised(200.0)).rows;
        assert_eq!(rows[0][4], "-11.9 %, more than 5 %");
    }
}
