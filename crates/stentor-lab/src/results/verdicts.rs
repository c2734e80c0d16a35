//! Verdicts of our records on a paper's claims, corrected for multiple testing.
//!
//! Each comparison has a p-value from its rounds (`claims::judge`), and each claim the one of its weakest comparison. A run whose results were
//! looked at several times shares the error rate among the looks. Holm's method corrects the p-values of all claims of the study together. A
//! claim that does not pass the correction is undecided.

use serde::Serialize;

use super::evidence::{chosen, chosen_at, figures};
use super::setting::{self, SettingLevels};
use super::{CONFIDENCE, MeasuredCell, Results, ResultsError};
use crate::claims::ClaimVerdict;
use crate::claims::judge::{Compared, Evidence, Judgment};
use crate::claims::{ClaimsError, Judged, SettingVerdicts, judge_measured};
use crate::looks::LookFindings;
use crate::record::ForkRecord;
use crate::statistics::holm;

/// Error rate over the claims of a study: one study of twenty may have a wrong decision.
pub(super) const ERROR_SHARE: f64 = 0.05;

/// The verdicts on all claims.
#[derive(Debug)]
pub struct Verdicts {
    /// Each claim, with the paper's own verdict and ours.
    pub claims: Vec<ClaimFindings>,
    /// True if the period's software ran; without it our verdicts do not concern the paper.
    pub period: bool,
    /// The levels at which the period's software was judged, for factors that the paper's figures do not name.
    pub period_setting: String,
    /// The levels at which today's software was judged.
    pub modern_setting: String,
}

/// The findings on one claim.
#[derive(Debug)]
pub struct ClaimFindings {
    /// The claim, with the judgment by the paper's own tables.
    pub judged: Judged,
    /// The finding with the period's software.
    pub period: Finding,
    /// The finding with today's software in its place.
    pub modern: Finding,
    /// The setting of these findings, named by what its alternatives vary; empty without alternatives.
    pub setting: String,
    /// The findings at the alternatives to the paper's setting.
    pub alternatives: Vec<AlternativeFindings>,
}

/// The findings on one claim at an alternative to the paper's setting.
#[derive(Debug)]
pub struct AlternativeFindings {
    /// The levels that differ.
    pub setting: String,
    /// The finding with the period's software.
    pub period: Finding,
    /// The finding with today's software in its place.
    pub modern: Finding,
}

/// The finding of measurements on a claim.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    /// The verdict, after the correction.
    pub verdict: ClaimVerdict,
    /// The corrected p-value; absent if nothing is decided, or if chance has no part in the decision.
    pub p: Option<f64>,
    /// True if the verdict rests on numbers that are the same in every fork.
    pub is_deterministic: bool,
    /// The judgment with its comparisons.
    #[serde(skip)]
    pub judgment: Option<Judgment>,
    /// The reason for a missing or weaker verdict.
    pub why: String,
}

impl Finding {
    fn nothing(why: &str) -> Self {
        let why = why.to_owned();
        Self { verdict: ClaimVerdict::NotTestable, p: None, is_deterministic: false, judgment: None, why }
    }
}

/// Judges all claims of the study; `None` for a study without claims.
pub fn verdicts(results: &Results) -> Result<Option<Verdicts>, ClaimsError> {
    let Some(dossier) = &results.dossier else { return Ok(None) };
    let [period, modern] = [chosen(results, true), chosen(results, false)];
    let published = dossier.judge(None)?;
    let at_papers = both(results, &results.setting, published.len())?;
    let others = setting::alternatives(results);
    let setting = if others.is_empty() { String::new() } else { setting::own_name(results) };
    let claims = published.into_iter().zip(at_papers).map(|(judged, (period, modern))| {
        let (setting, alternatives) = (setting.clone(), Vec::new());
        ClaimFindings { judged, period, modern, setting, alternatives }
    });
    let mut claims: Vec<ClaimFindings> = claims.collect();
    for (name, levels) in others {
        let found = both(results, &levels, claims.len())?;
        for (claim, (period, modern)) in claims.iter_mut().zip(found) {
            claim.alternatives.push(AlternativeFindings { setting: name.clone(), period, modern });
        }
    }
    if let Some(probed) = &results.probed {
        by_probes(&mut claims, dossier.judge(Some(&probed.figures()))?);
    }
    Ok(Some(Verdicts {
        claims,
        period: !period.is_empty(),
        period_setting: setting_text(results, &period),
        modern_setting: setting_text(results, &modern),
    }))
}

/// Returns the findings on each claim at a setting, with the period's software and with today's.
fn both(
    results: &Results,
    setting: &SettingLevels,
    count: usize,
) -> Result<Vec<(Finding, Finding)>, ClaimsError> {
    let of = |period: bool| findings(results, &chosen_at(results, period, setting), count);
    Ok(of(true)?.into_iter().zip(of(false)?).collect())
}

/// Returns the setting of the cells; empty for campaigns, which are shown with all their levels.
fn setting_text(results: &Results, cells: &[&MeasuredCell]) -> String {
    if results.is_of_campaigns() { String::new() } else { setting::setting_text(results, cells) }
}

/// Judges the expectations beyond the paper. Each judgment is paired with its question.
pub(super) fn expected(results: &Results) -> Result<Vec<(String, Judged)>, ClaimsError> {
    let Some(dossier) = &results.dossier else { return Ok(Vec::new()) };
    let cells: Vec<&MeasuredCell> = results.cells.iter().collect();
    dossier.expected(&figures(results, &cells, CONFIDENCE))
}

/// Adds the results of probes to claims about features. They come from our own faces, which are today's software, and are not subject to
/// chance.
fn by_probes(claims: &mut [ClaimFindings], probed: Vec<Judged>) {
    for (one, judged) in claims.iter_mut().zip(probed) {
        if !one.judged.statement.is_probed() {
            continue;
        }
        one.period = Finding::nothing("probes are of our own faces, not of the period's software");
        one.modern = match judged.ours {
            Some(mut judgment) => {
                let mut why = judged.statement.basis;
                match (judgment.verdict, &mut judgment.missing) {
                    (ClaimVerdict::SetByExperiment, Some(setting)) => why.clone_from(setting),
                    // If no probe decided the claim, the significance of the probe is shown instead of the missing check.
                    (_, missing) => *missing = missing.take().map(|_| why.clone()),
                }
                let verdict = judgment.verdict;
                Finding { verdict, p: None, is_deterministic: false, why, judgment: Some(judgment) }
            }
            None => Finding::nothing("not probed here"),
        };
    }
}

impl Verdicts {
    /// Describes the settings at which claims were judged, for each kind of software; empty without any.
    #[must_use]
    pub fn judged_at(&self) -> String {
        let each = [("period software", &self.period_setting), ("today's software", &self.modern_setting)];
        let settings = each.into_iter().filter(|(_, setting)| !setting.is_empty());
        let settings: Vec<String> = settings.map(|(name, setting)| format!("{name} at {setting}")).collect();
        if settings.is_empty() {
            return String::new();
        }
        let others = self.claims.first().map(|one| &one.alternatives[..]).unwrap_or_default();
        let others: String = others.iter().map(|one| format!("; then again at {}", one.setting)).collect();
        format!("Judged were {}{others}.", settings.join("; "))
    }
}

impl ClaimFindings {
    fn by_period(&self) -> Option<Judgment> {
        self.period.judgment.clone()
    }

    fn by_modern(&self) -> Option<Judgment> {
        self.modern.judgment.clone()
    }

    /// Lists the findings with one kind of software, each with the name of its setting, which is empty without alternatives.
    #[must_use]
    pub fn at_each_setting(&self, period: bool) -> Vec<(&str, &Finding)> {
        let own = (self.setting.as_str(), if period { &self.period } else { &self.modern });
        let others = self.alternatives.iter();
        let others = others.map(|one| (one.setting.as_str(), if period { &one.period } else { &one.modern }));
        std::iter::once(own).chain(others).collect()
    }

    /// Returns the finding with the period's software, or else with today's, which alone may run what a setting decides.
    #[must_use]
    pub const fn best(&self) -> &Finding {
        let is_set = matches!(
            (self.period.verdict, self.modern.verdict),
            (ClaimVerdict::NotTestable, ClaimVerdict::SetByExperiment)
        );
        if self.period.judgment.is_some() && !is_set { &self.period } else { &self.modern }
    }

    /// Returns the finding that represents the paper: of the period's software, or of probes if the claim concerns a format. A claim about
    /// the paper's own numbers is not testable with any software.
    #[must_use]
    pub fn speaking(&self) -> Option<&Finding> {
        let statement = &self.judged.statement;
        let is_told = self.period.judgment.is_some() || statement.is_probed() || statement.about_paper;
        Some(self.best()).filter(|best| is_told && best.judgment.is_some())
    }

    /// Converts to a judged claim, with the finding that represents the paper as our judgment.
    #[must_use]
    pub fn into_judged(self) -> Judged {
        let ours = self.speaking().and_then(|finding| {
            let missing = Some(finding.why.clone()).filter(|why| !why.is_empty());
            Some(Judgment { verdict: finding.verdict, missing, ..finding.judgment.clone()? })
        });
        let at_settings = self.at_settings();
        Judged { ours, at_settings, ..self.judged }
    }

    /// Returns the verdicts at each setting; empty without alternatives.
    fn at_settings(&self) -> Vec<SettingVerdicts> {
        if self.alternatives.is_empty() {
            return Vec::new();
        }
        let pairs = self.at_each_setting(true).into_iter().zip(self.at_each_setting(false));
        let verdicts = |((setting, period), (_, modern)): ((&str, &Finding), (_, &Finding))| {
            SettingVerdicts { setting: setting.to_owned(), period: period.verdict, modern: modern.verdict }
        };
        pairs.map(verdicts).collect()
    }
}

/// Looks at the records of a run so far: counts the comparisons of all claims, and those that further rounds may settle.
pub fn look(records: &[ForkRecord], effect_share: f64) -> Result<LookFindings, ResultsError> {
    let results = Results::of(records.to_vec())?;
    let found = verdicts(&results)?;
    let mut counts = LookFindings { of: 0, open: 0 };
    for software in [ClaimFindings::by_period, ClaimFindings::by_modern] {
        let claims = found.iter().flat_map(|found| &found.claims);
        let judgments = claims.filter(|one| !one.judged.statement.is_probed()).filter_map(software);
        let tested: Vec<Judgment> = judgments.filter(|one| one.verdict.is_tested()).collect();
        let level = first_level(tested.len(), results.looks());
        for compared in tested.iter().map(|judgment| &judgment.comparisons) {
            // One of several comparisons can refute a claim, so that chance has as many occasions.
            let level = level / compared.len().max(1) as f64;
            counts.of += compared.len();
            counts.open += compared.iter().filter(|one| !one.is_settled(level, effect_share)).count();
        }
    }
    Ok(counts)
}

/// Judges one check of a claim that cannot be tested as a whole, by the period's software or, if it did not run, by today's.
pub fn part(results: &Results, check: &str) -> Result<Judgment, ClaimsError> {
    let period = chosen(results, true);
    let cells = if period.is_empty() { chosen(results, false) } else { period };
    judge_measured(check, &figures(results, &cells, CONFIDENCE))
}

fn findings(results: &Results, cells: &[&MeasuredCell], count: usize) -> Result<Vec<Finding>, ClaimsError> {
    let Some(dossier) = results.dossier.as_ref().filter(|_| !cells.is_empty()) else {
        return Ok(vec![Finding::nothing("not run here"); count]);
    };
    let judged = dossier.judge(Some(&figures(results, cells, CONFIDENCE)))?;
    let mut judged: Vec<Judgment> = judged.into_iter().filter_map(|one| one.ours).collect();
    let p_values: Vec<Option<f64>> = judged.iter().map(|one| p_value(one, results.looks())).collect();
    let level = first_level(p_values.iter().flatten().count(), results.looks());
    judged.iter_mut().for_each(|one| one.power = one.power_at(level));
    Ok(corrected(&judged, &p_values))
}

/// Returns the significance level of the first step of Holm's method, for each of the looks.
pub(crate) fn first_level(claims: usize, looks: u32) -> f64 {
    ERROR_SHARE / claims.max(1) as f64 / f64::from(looks.max(1))
}

/// Returns the p-value of a claim; `None` if it is not testable, or if chance has no part in its decision.
fn p_value(judgment: &Judgment, looks: u32) -> Option<f64> {
    if judgment.is_deterministic() {
        return None;
    }
    let p = |one: &Compared| one.evidence.as_ref().map_or(0.0, Evidence::p).max(one.p_min);
    let alone = match judgment.verdict {
        ClaimVerdict::NotTestable | ClaimVerdict::SetByExperiment => return None,
        ClaimVerdict::Undecided => return Some(1.0),
        // To hold, every comparison must be true; to fail, one of several is enough, so chance has that many occasions.
        ClaimVerdict::Holds => judgment.comparisons.iter().map(p).fold(0.0, f64::max),
        ClaimVerdict::DoesNotHold => {
            judgment.comparisons.len() as f64 * judgment.failures().map(p).fold(1.0, f64::min)
        }
    };
    (alone > 0.0).then(|| (alone * f64::from(looks.max(1))).min(1.0))
}

fn corrected(usual: &[Judgment], p_values: &[Option<f64>]) -> Vec<Finding> {
    let present_p_values: Vec<f64> = p_values.iter().flatten().copied().collect();
    let mut all = holm(&present_p_values).into_iter();
    let finding = |(judgment, p): (&Judgment, &Option<f64>)| {
        let corrected = p.and_then(|_| all.next());
        let is_deterministic = judgment.is_deterministic();
        let is_sure = corrected.is_none_or(|p| p <= ERROR_SHARE);
        let is_decided = judgment.verdict.is_decided();
        let (verdict, why) = match judgment.verdict {
            decided if is_sure || !is_decided => (decided, judgment.missing.clone().unwrap_or_default()),
            decided => {
                let why = format!(
                    "alone it {}; among {} claims that may be chance",
                    decided.word(),
                    present_p_values.len()
                );
                (ClaimVerdict::Undecided, why)
            }
        };
        let p = corrected.filter(|_| is_decided);
        Finding { verdict, p, is_deterministic, judgment: Some(judgment.clone()), why }
    };
    usual.iter().zip(p_values).map(finding).collect()
}
