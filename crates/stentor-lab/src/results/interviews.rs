//! The interview statements that two codings tell apart, and how far the codings agree.

use super::Account;
use super::section::{Section, SectionBlock};
use crate::claims::agreement::{CodingAgreement, StatementCode};
use crate::document::TextTable;

/// The section; empty for a study without a second coding.
pub(super) fn section(account: &Account) -> Section {
    let section = Section::new("interviews", "Interviews, coded twice");
    let Some(agreement) = &account.agreement else { return section };
    let changed = agreement.changed_claims.iter().map(|one| {
        format!("{}: {} by the first coding, {} by the second", one.id, one.first.word(), one.second.word())
    });
    section
        .both(SectionBlock::Words(words(agreement)))
        .both(SectionBlock::List(changed.collect()))
        .both(SectionBlock::Table(differences(agreement), "words"))
}

fn words(agreement: &CodingAgreement) -> String {
    let claims = match agreement.changed_claims.len() {
        0 => "No claim gets another verdict by the second coding.".to_owned(),
        count => {
            format!("The second coding changes the verdict of the paper's own statements on {count} claims.")
        }
    };
    format!(
        "Topic and polarity of the {} statements were coded twice, both times by this project, the second time from the text alone. \
         Cohen's kappa is {:.2} for topics and {:.2} for polarities; {:.0} % of the statements have both the same. Claims are judged by \
         the first coding. {claims} The table has the statements that differ.",
        agreement.statements,
        agreement.kappa_topic,
        agreement.kappa_polarity,
        100.0 * agreement.same_share
    )
}

fn differences(agreement: &CodingAgreement) -> TextTable {
    let code = |code: &StatementCode| format!("{}, {}", code.topic, code.polarity);
    let rows = agreement.differences.iter().map(|one| [one.id.clone(), code(&one.first), code(&one.second)]);
    TextTable::new(["statement", "first coding", "second coding"], rows)
}
