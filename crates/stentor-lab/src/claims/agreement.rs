//! Agreement of two codings of the same interview statements.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::figures::{Figure, FigureValue, Figures, FiguresError};
use super::{ClaimVerdict, ClaimsError, Dossier, shipped};

/// The metric of coded statements.
const POLARITY: &str = "polarity";

/// The agreement of two codings. Both were made by this project.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CodingAgreement {
    /// Number of statements.
    pub statements: usize,
    /// Cohen's kappa of the topics.
    pub kappa_topic: f64,
    /// Cohen's kappa of the polarities.
    pub kappa_polarity: f64,
    /// Share of the statements with the same topic and polarity.
    pub same_share: f64,
    /// The statements that the codings tell apart.
    pub differences: Vec<CodedTwice>,
    /// The claims with another verdict of the paper's own statements by the second coding.
    pub changed_claims: Vec<ChangedClaim>,
}

/// A statement with its two codes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CodedTwice {
    /// The statement's number in the paper.
    pub id: String,
    /// The first code.
    pub first: StatementCode,
    /// The second one.
    pub second: StatementCode,
}

/// The code of a statement.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct StatementCode {
    /// What it is about.
    pub topic: String,
    /// `for`, `against` or `neutral`.
    pub polarity: String,
}

/// A claim whose verdict depends on the coding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChangedClaim {
    /// Its id.
    pub id: String,
    /// The verdict by the first coding.
    pub first: ClaimVerdict,
    /// The verdict by the second.
    pub second: ClaimVerdict,
}

#[derive(Deserialize)]
struct SecondCode {
    id: String,
    #[serde(flatten)]
    code: StatementCode,
}

impl Dossier {
    /// Compares the codings of the study's statements; `None` for a study without a second coding.
    pub fn agreement(&self) -> Result<Option<CodingAgreement>, ClaimsError> {
        let Some(second) = shipped::second_coding(&self.paper().id) else { return Ok(None) };
        let second = read(second).map_err(FiguresError::from)?;
        let pairs: Vec<CodedTwice> =
            self.figures().iter().filter_map(|one| coded_twice(one, &second)).collect();
        let topics = pairs.iter().map(|one| (one.first.topic.as_str(), one.second.topic.as_str()));
        let polarities = pairs.iter().map(|one| (one.first.polarity.as_str(), one.second.polarity.as_str()));
        let (kappa_topic, kappa_polarity) = (kappa(topics), kappa(polarities));
        let changed_claims = self.changed_by(&second)?;
        let statements = pairs.len();
        let differences: Vec<CodedTwice> = pairs.into_iter().filter(|one| one.first != one.second).collect();
        let same_share = 1.0 - differences.len() as f64 / statements.max(1) as f64;
        Ok(Some(CodingAgreement {
            statements,
            kappa_topic,
            kappa_polarity,
            same_share,
            differences,
            changed_claims,
        }))
    }

    fn changed_by(&self, second: &BTreeMap<String, StatementCode>) -> Result<Vec<ChangedClaim>, ClaimsError> {
        let figures: Figures = self.figures().iter().map(|figure| recoded(figure, second)).collect();
        let other = Self { definition: self.definition.clone(), figures };
        let pairs = self.judge(None)?.into_iter().zip(other.judge(None)?);
        let changed = pairs.filter_map(|(first, second)| {
            let (first_verdict, second_verdict) = (first.published.verdict, second.published.verdict);
            (first_verdict != second_verdict).then_some(ChangedClaim {
                id: first.statement.id,
                first: first_verdict,
                second: second_verdict,
            })
        });
        Ok(changed.collect())
    }
}

fn read(text: &str) -> Result<BTreeMap<String, StatementCode>, csv::Error> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    reader.deserialize::<SecondCode>().map(|row| row.map(|row| (row.id, row.code))).collect()
}

fn coded_twice(figure: &Figure, second: &BTreeMap<String, StatementCode>) -> Option<CodedTwice> {
    let id = figure.field("id").filter(|_| figure.metric == POLARITY)?;
    let (topic, polarity) = (figure.field("topic")?.to_owned(), figure.field("value")?.to_owned());
    let first = StatementCode { topic, polarity };
    Some(CodedTwice { id: id.to_owned(), first, second: second.get(id)?.clone() })
}

fn recoded(figure: &Figure, second: &BTreeMap<String, StatementCode>) -> Figure {
    let Some(CodedTwice { second: code, .. }) = coded_twice(figure, second) else { return figure.clone() };
    let mut figure = Figure { value: FigureValue::Word(code.polarity), ..figure.clone() };
    figure.factors.insert("topic".to_owned(), code.topic);
    figure
}

/// Computes Cohen's kappa: the agreement beyond that of two coders who assign the same codes as often, at random.
fn kappa<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> f64 {
    let mut codes: BTreeMap<&str, [f64; 2]> = BTreeMap::new();
    let (mut count, mut same) = (0.0, 0.0);
    for (first, second) in pairs {
        codes.entry(first).or_default()[0] += 1.0;
        codes.entry(second).or_default()[1] += 1.0;
        count += 1.0;
        same += if first == second { 1.0 } else { 0.0 };
    }
    let by_chance: f64 = codes.values().map(|[first, second]| first * second / (count * count)).sum();
    let seen: f64 = same / count;
    if by_chance < 1.0 { (seen - by_chance) / (1.0 - by_chance) } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kappa_is_that_of_a_textbook() {
        // Cohen's example of two judges: 88 + 40 + 12 of 200 agree, 0.492 beyond chance.
        let cells = [
            ("a", "a", 88),
            ("a", "b", 14),
            ("a", "c", 18),
            ("b", "a", 10),
            ("b", "b", 40),
            ("b", "c", 10),
            ("c", "a", 2),
            ("c", "b", 6),
            ("c", "c", 12),
        ];
        let pairs = cells.into_iter().flat_map(|(first, second, times)| vec![(first, second); times]);
        assert!((kappa(pairs) - 0.492).abs() < 5e-4);
        assert_eq!(kappa([("a", "a"), ("b", "b")].into_iter()), 1.0);
        assert_eq!(kappa([("a", "a"), ("a", "b"), ("b", "a"), ("b", "b")].into_iter()), 0.0);
    }

    #[test]
    fn every_statement_of_the_interviews_is_coded_twice() {
        let dossier = Dossier::open("cai-2009").expect("readable").expect("known");
        let agreement = dossier.agreement().expect("judged").expect("a second coding");
        assert_eq!(agreement.statements, 106);
        assert!(agreement.kappa_topic > 0.0 && agreement.kappa_polarity > 0.0, "{agreement:?}");
        let known: Vec<&str> = dossier.figures().iter().filter_map(|one| one.field("topic")).collect();
        assert!(agreement.differences.iter().all(|one| known.contains(&one.second.topic.as_str())));
        let other = Dossier::open("nunes-2014").expect("readable").expect("known");
        assert_eq!(other.agreement().expect("judged"), None);
    }
}
