//! Table 1 of albertengo-2020, GCM's two connection servers, with what was seen at our own server beside each cell.

use super::Results;
use crate::claims::figures::{Figure, FigureValue};
use crate::document::TextTable;
use crate::probes::tried::TriedFeature;

const TABLE: &str = "Table 1";
/// The front that stands for GCM.
const SERVICE: &str = "GCM";
/// The trial that bears on a cell: the paper's feature, its connection server, and the trial's name.
const TRIALS: [(&str, &str, &str); 8] = [
    ("Upstream / downstream messages", "CCS", "CCS: upstream and downstream"),
    ("Upstream / downstream messages", "HTTP", "HTTP: upstream"),
    ("Messaging (synchronous / asynchronous)", "CCS", "CCS: asynchronous"),
    ("Messaging (synchronous / asynchronous)", "HTTP", "HTTP: synchronous"),
    ("Message format", "CCS", "CCS: JSON in XMPP"),
    ("Message format", "HTTP", "HTTP: plain text"),
    ("Multicast downstream", "CCS", "CCS: multicast"),
    ("Multicast downstream", "HTTP", "multicast"),
];

/// The table; empty for other studies.
pub(super) fn connection_servers(results: &Results) -> TextTable {
    let figures = results.dossier.iter().flat_map(|dossier| dossier.figures().iter());
    let cells = figures.filter(|figure| results.study == super::overhead::STUDY && figure.source == TABLE);
    let rows = cells.filter_map(|figure| row(figure, &results.tried));
    TextTable::new(["feature", "connection server", "the paper", "tried at our server"], rows)
}

fn row(figure: &Figure, tried: &[TriedFeature]) -> Option<[String; 4]> {
    let FigureValue::Word(paper) = &figure.value else { return None };
    let of_cell =
        |(feature, server, _): &&(&str, &str, &str)| *feature == figure.metric && *server == figure.subject;
    let (_, _, trial) = TRIALS.iter().find(of_cell)?;
    let found = tried.iter().find(|one| one.service == SERVICE && one.feature == *trial);
    let seen = found
        .map_or_else(|| "not tried".to_owned(), |one| format!("{trial}: **{}** ({})", one.answer, one.seen));
    Some([figure.metric.clone(), figure.subject.clone(), paper.clone(), seen])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cell_of_table_1_has_a_trial_of_its_own() {
        let dossier = crate::claims::Dossier::open("albertengo-2020").expect("readable").expect("known");
        let tried: Vec<TriedFeature> = TRIALS
            .iter()
            .map(|(_, _, trial)| TriedFeature {
                feature: (*trial).to_owned(),
                service: SERVICE.to_owned(),
                answer: "YES".to_owned(),
                seen: format!("seen by {trial}"),
            })
            .collect();
        let cells = dossier.figures().iter().filter(|figure| figure.source == TABLE);
        let rows: Vec<[String; 4]> = cells.filter_map(|figure| row(figure, &tried)).collect();
        assert_eq!(rows.len(), TRIALS.len());
        for ((_, server, trial), row) in TRIALS.iter().zip(&rows) {
            assert_eq!(row[1], *server);
            assert!(row[3].ends_with(&format!("**YES** (seen by {trial})")), "{row:?}");
        }
        let untried = dossier.figures().iter().filter_map(|figure| row(figure, &[]));
        assert!(untried.into_iter().all(|row| row[3] == "not tried"));
    }
}
