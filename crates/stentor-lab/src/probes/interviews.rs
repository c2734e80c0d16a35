//! What the interviewed of the paper said, counted by our coding of each statement.

use super::{Protocol, Reply};
use crate::claims::figures::{Figure, Figures};

/// Topics that bear on how a service is extended and maintained.
pub(super) const MAINTAINABILITY: &[&str] = &["maintainability"];
/// Topics that bear on how soon it is learned.
pub(super) const LEARNING: &[&str] = &["ease", "knowledge"];

/// Counts the statements on some topics that speak for or against a protocol.
pub(super) fn count(protocol: Protocol, figures: &Figures, topics: &[&str], polarity: &str) -> Reply {
    let on_topic = |figure: &&Figure| {
        figure.metric == "polarity"
            && figure.subject == protocol.label()
            && figure.field("topic").is_some_and(|topic| topics.contains(&topic))
    };
    let all: Vec<&Figure> = figures.iter().filter(on_topic).collect();
    let ids: Vec<&str> = all
        .iter()
        .filter(|figure| figure.field("value") == Some(polarity))
        .filter_map(|figure| figure.field("id"))
        .collect();
    let named = if ids.is_empty() { String::new() } else { format!(": {}", ids.join(", ")) };
    let unit = if polarity == "for" { "statements for" } else { "statements against" };
    Reply::count(
        ids.len(),
        unit,
        format!("{} of {} statements on {}{named}", ids.len(), all.len(), topics.join(" and ")),
    )
}
