//! Statements of the paper's interviewees, counted by our coding of each statement.

use super::{PaperProtocol, ProbeReply};
use crate::claims::figures::{Figure, Figures};

/// Counts the statements on the given topics that speak for or against a protocol.
pub(super) fn count(
    protocol: PaperProtocol,
    figures: &Figures,
    topics: &[String],
    polarity: &str,
) -> ProbeReply {
    let on_topic = |figure: &&Figure| {
        figure.metric == "polarity"
            && figure.subject == protocol.label()
            && figure.field("topic").is_some_and(|topic| topics.iter().any(|one| one == topic))
    };
    let all: Vec<&Figure> = figures.iter().filter(on_topic).collect();
    let ids: Vec<&str> = all
        .iter()
        .filter(|figure| figure.field("value") == Some(polarity))
        .filter_map(|figure| figure.field("id"))
        .collect();
    let named = if ids.is_empty() { String::new() } else { format!(": {}", ids.join(", ")) };
    let unit = if polarity == "for" { "statements for" } else { "statements against" };
    ProbeReply::count(
        ids.len(),
        unit,
        format!("{} of {} statements on {}{named}", ids.len(), all.len(), topics.join(" and ")),
    )
}
