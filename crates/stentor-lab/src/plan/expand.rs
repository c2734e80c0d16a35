//! Expansion of a plan into cells: every combination of levels for every available subject.

use super::{
    Amount, CpuOf, Experiment, Factor, FactorLevel, PlanError, PlanSlot, RunProfile, StudyPlan, UnservedPart,
};
use crate::subject::protocol::SubjectRole;
use crate::subject::reference::Op;
use crate::subject::{
    BUFFERING, BUILT_IN, Definition, FRESH, INSERT, JAVA_CODE, SERVED, SERVED_STACK, SERVICE, STORE, TLS,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Duration of starting and ending a pair of processes, in seconds, for our own subjects and for foreign ones.
const FORK_SECONDS: f64 = 0.6;
const FOREIGN_FORK_SECONDS: f64 = 4.0;
/// Factor for the exchange duration of foreign subjects, which are slower, above all at first.
const FOREIGN_FACTOR: f64 = 3.0;
/// The level of the factor `insert` if no rows are kept.
const NONE: &str = "none";
/// The factor of a limited heap, and its placeholder in a subject's start command.
const HEAP: &str = "heap";
const HEAP_WORD: &str = "@heap";
/// The factor of connections, whose level `fresh` is an ability of a client.
const CONNECTION: &str = "connection";
/// The factor of interruptions in the middle of a synchronisation.
const INTERRUPTION: &str = "interruption";

/// The selected part of a plan.
#[derive(Debug, Clone, Default)]
pub struct PlanChoice {
    /// The profile.
    pub profile: RunProfile,
    /// Selected levels by factor; factors that are not listed keep all.
    pub factors: BTreeMap<String, Vec<String>>,
    /// Selected subjects by parts of labels, ids or stacks; all if empty.
    pub subjects: Vec<String>,
    /// Selected variants; all if empty.
    pub variants: Vec<String>,
    /// Forks and samples that override the profile's.
    pub samples: SampleChoice,
}

/// Amounts that override the profile's.
#[derive(Debug, Clone, Copy, Default)]
pub struct SampleChoice {
    /// Forks of each cell.
    pub forks: Option<u32>,
    /// Measured exchanges of each fork.
    pub samples: Option<u32>,
}

/// One combination of levels for one subject.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// The variant (reading) of the study.
    pub variant: String,
    /// The experiment's id in the plan.
    pub experiment: String,
    /// The experiment's name in `published.csv`.
    pub name: String,
    /// The operation.
    pub op: Op,
    /// Levels by factor.
    pub levels: BTreeMap<String, String>,
    /// Settings for both halves.
    pub settings: BTreeMap<String, String>,
    /// The paper's name for the subject.
    pub label: String,
    /// `period`, `rust`, or the name of other software.
    pub stack: String,
    /// The client half.
    pub client: Definition,
    /// The server half.
    pub server: Definition,
    /// The gateway between the halves, if they are not connected to each other.
    pub gateway: Option<Definition>,
    /// The amounts.
    pub amount: Amount,
    /// Interval between intended starts, in nanoseconds.
    pub interval_ns: u64,
    /// Maximum of concurrent exchanges.
    pub in_flight: u32,
    /// CPU limit of each half, in percent of one core.
    pub cpu_percent: Option<u32>,
    /// The halves to which the CPU limit applies.
    pub cpu_of: CpuOf,
    /// Memory limit of each half, in MiB.
    pub memory_mib: Option<u32>,
    /// Profile of the link between a gateway and its server, instead of the study's.
    pub gateway_link: Option<String>,
    /// Estimated duration of one fork, in seconds.
    pub fork_seconds: f64,
}

/// A part that is not run, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NotRun {
    /// A subject, a cell or a table of the paper.
    pub what: String,
    /// The reason for leaving it out, in a sentence.
    pub reason: String,
}

/// The expansion of a plan.
#[derive(Debug, Clone, Default)]
pub struct ExpandedPlan {
    /// The cells to run.
    pub cells: Vec<Cell>,
    /// Parts of the plan that cannot be run.
    pub not_run: Vec<NotRun>,
}

impl ExpandedPlan {
    /// Returns the estimated duration of all forks, in seconds.
    #[must_use]
    pub fn expected_seconds(&self) -> f64 {
        self.cells.iter().map(|cell| cell.fork_seconds * f64::from(cell.amount.forks)).sum()
    }
}

impl Cell {
    /// Returns its label for one line of output.
    #[must_use]
    pub fn label_text(&self) -> String {
        let levels: Vec<&str> = self.levels.values().map(String::as_str).collect();
        format!("{} {} ({}) {} {}", self.experiment, self.label, self.stack, self.variant, levels.join(" "))
    }
}

impl StudyPlan {
    /// Lists the selected cells, filled with the available subjects.
    pub fn expand(&self, choice: &PlanChoice, definitions: &[Definition]) -> Result<ExpandedPlan, PlanError> {
        self.check(choice)?;
        let mut expansion = ExpandedPlan { cells: Vec::new(), not_run: self.not_here.clone() };
        for experiment in &self.experiments {
            for variant in wished(&experiment.variants, self.wish(choice)) {
                let named = experiment.named_slots(variant, definitions, choice);
                let listed = experiment.subjects.iter().filter(|slot| fits(&slot.variants, variant));
                for slot in listed.chain(&named) {
                    let filled = fill(slot, experiment, definitions, choice);
                    expansion.not_run.extend(missing(slot, &filled, choice));
                    for pair in &filled {
                        let unserved: &[_] = if pair.is_served() { &self.unserved } else { &[] };
                        expansion.cells.extend(cells(experiment, variant, slot, pair, choice, unserved));
                    }
                }
            }
        }
        if choice.names_server() {
            expansion.not_run.extend(self.unserved.iter().map(UnservedPart::not_run));
        }
        expansion.not_run.dedup();
        Ok(expansion)
    }

    /// Returns the variants to run; all if the list is empty.
    fn wish<'a>(&'a self, choice: &'a PlanChoice) -> &'a [String] {
        match choice.profile {
            RunProfile::Quick if choice.variants.is_empty() => &self.quick_variants,
            _ => &choice.variants,
        }
    }

    /// Returns true if a subject with this id fills a slot of the study.
    #[must_use]
    pub fn concerns(&self, id: &str) -> bool {
        let dialect = id.split('/').next().unwrap_or_default();
        let mut slots = self.experiments.iter().flat_map(|experiment| &experiment.subjects);
        slots.any(|slot| {
            let fills = || stack(slot, id).is_some() || is_named_server(slot, id);
            slot.dialects.iter().any(|known| known == dialect) && fills()
        })
    }

    /// Rejects selections without a match, so that a typing error does not cause an empty run.
    fn check(&self, choice: &PlanChoice) -> Result<(), PlanError> {
        let unknown = |what, name: &String, known: Vec<&str>| {
            let mut known: Vec<&str> = known;
            known.sort_unstable();
            known.dedup();
            let known = known.join(", ");
            Err(PlanError::Unknown { study: self.id.clone(), what, name: name.clone(), known })
        };
        let factors = || self.experiments.iter().flat_map(|experiment| &experiment.factors);
        for (name, levels) in &choice.factors {
            let of_name: Vec<&Factor> = factors().filter(|factor| factor.name == *name).collect();
            if of_name.is_empty() {
                return unknown("factor", name, factors().map(|factor| factor.name.as_str()).collect());
            }
            let known = || of_name.iter().flat_map(|factor| &factor.levels).map(|level| level.level.as_str());
            if let Some(level) = levels.iter().find(|level| known().all(|one| one != level.as_str())) {
                return unknown("level", level, known().collect());
            }
        }
        let variants = || self.experiments.iter().flat_map(|one| &one.variants).map(String::as_str);
        match choice.variants.iter().find(|variant| variants().all(|one| one != variant.as_str())) {
            Some(variant) => unknown("variant", variant, variants().collect()),
            None => self.check_served(choice),
        }
    }
}

/// A client and a server that fill a slot.
struct StackPair {
    stack: String,
    client: Definition,
    server: Definition,
    /// The server of cells with TLS; `None` excludes such cells.
    encrypting: Option<Definition>,
    /// The gateway between both.
    gateway: Option<Definition>,
}

impl StackPair {
    fn is_served(&self) -> bool {
        self.stack == SERVED_STACK
    }
}

fn wished<'a>(all: &'a [String], wish: &[String]) -> impl Iterator<Item = &'a String> {
    all.iter().filter(move |variant| wish.is_empty() || wish.contains(variant))
}

pub(super) fn fits(only: &[String], variant: &String) -> bool {
    only.is_empty() || only.contains(variant)
}

/// Finds the pairs of subjects for a slot. Our own subject substitutes a missing half, and a server that cannot read rows although the
/// experiment requires it.
fn fill(
    slot: &PlanSlot,
    experiment: &Experiment,
    definitions: &[Definition],
    choice: &PlanChoice,
) -> Vec<StackPair> {
    let reads_rows = experiment.settings.contains_key(STORE);
    let mut pairs = Vec::new();
    for definition in definitions.iter().filter(|one| one.ops.contains(&experiment.op)) {
        let dialect = definition.id.split('/').next().unwrap_or_default();
        if !slot.dialects.iter().any(|known| known == dialect) {
            continue;
        }
        let Some(stack) = stack(slot, &definition.id) else { continue };
        let ours = definitions.iter().find(|one| one.id == format!("{dialect}/{BUILT_IN}"));
        let named = named_server(slot, &stack, dialect, definitions);
        let half = |role: SubjectRole| {
            let other = named.filter(|_| role == SubjectRole::Server);
            let one = other.unwrap_or(definition);
            let is_able = role == SubjectRole::Client || !reads_rows || one.can(STORE);
            let own = (is_able && one.roles.contains(&role)).then_some(one);
            own.or(ours).cloned()
        };
        let (Some(client), Some(server)) = (half(SubjectRole::Client), half(SubjectRole::Server)) else {
            continue;
        };
        if is_wished(slot, &stack, &definition.id, choice) {
            let encrypting = encrypting(&client, &server, ours).cloned();
            // An app server of others meets our gateway.
            let mut gateways = [Some(definition), ours].into_iter().flatten();
            let gateway = gateways.find(|one| one.roles.contains(&SubjectRole::Gateway)).cloned();
            pairs.push(StackPair { stack, client, server, encrypting, gateway });
        }
    }
    pairs
}

/// Finds the server that a slot names for the paper's clients. With a different server for each client, a comparison of clients would
/// compare servers.
fn named_server<'a>(
    slot: &PlanSlot,
    stack: &str,
    dialect: &str,
    definitions: &'a [Definition],
) -> Option<&'a Definition> {
    let mut able = definitions.iter().filter(|one| one.roles.contains(&SubjectRole::Server));
    let speaks = |id: &str| id.split('/').next() == Some(dialect);
    able.find(|one| speaks(&one.id) && is_named_server(slot, &one.id)).filter(|_| stack == "period")
}

fn is_named_server(slot: &PlanSlot, id: &str) -> bool {
    slot.server.iter().any(|part| id.contains(part.as_str()))
}

/// Finds the server of encrypted cells. A half without TLS would communicate unencrypted and be reported as encrypted.
fn encrypting<'a>(
    client: &Definition,
    server: &'a Definition,
    ours: Option<&'a Definition>,
) -> Option<&'a Definition> {
    // Two halves of ours would be reported under another subject's name.
    let instead = ours.filter(|ours| ours.id != client.id);
    let mut able =
        [Some(server), instead].into_iter().flatten().filter(|one| one.encrypts(SubjectRole::Server));
    client.encrypts(SubjectRole::Client).then(|| able.next())?
}

pub(super) fn stack(slot: &PlanSlot, id: &str) -> Option<String> {
    let has = |parts: &[String]| parts.iter().any(|part| part == "*" || id.contains(part.as_str()));
    if id.ends_with(SERVED) {
        // It serves different data than all other subjects, and therefore has slots of its own.
        slot.also.iter().any(|part| part == SERVED).then(|| SERVED_STACK.to_owned())
    } else if id.ends_with(BUILT_IN) {
        slot.rust.then(|| "rust".to_owned())
    } else if has(&slot.period) {
        Some("period".to_owned())
    } else if has(&slot.also) {
        Some(id.split_once('/').map_or(id, |(_, software)| software).to_owned())
    } else {
        None
    }
}

/// Returns true if a subject is selected. All profiles include our own subjects and the paper's; others are included if named, or if the
/// profile is long enough.
fn is_wished(slot: &PlanSlot, stack: &str, id: &str, choice: &PlanChoice) -> bool {
    if choice.subjects.is_empty() {
        let is_early = |part: &String| id.contains(part.as_str());
        return ["rust", "period"].contains(&stack)
            || stack != SERVED_STACK
                && match choice.profile {
                    RunProfile::Quick => false,
                    RunProfile::Standard => slot.standard.iter().any(is_early),
                    RunProfile::Full => true,
                };
    }
    choice.subjects.iter().any(|wish| {
        // The ids of our own subjects contain the server's name too, so this name must match exactly.
        if wish == SERVED_STACK || stack == SERVED_STACK {
            return [stack, id].contains(&wish.as_str());
        }
        stack == wish || [slot.label.as_str(), id].iter().any(|name| name.contains(wish.as_str()))
    })
}

fn missing(slot: &PlanSlot, filled: &[StackPair], choice: &PlanChoice) -> Option<NotRun> {
    let has_period = filled.iter().any(|pair| pair.stack == "period");
    if slot.period.is_empty() || has_period || !choice.subjects.is_empty() {
        return None;
    }
    let reason = format!(
        "there is no subject with {} in its id: put its definition into the directory of --subjects, and build it with \
         stentor lab subject build",
        slot.period.join(" or ")
    );
    Some(NotRun { what: format!("{} (the paper's software)", slot.label), reason })
}

fn cells(
    experiment: &Experiment,
    variant: &str,
    slot: &PlanSlot,
    pair: &StackPair,
    choice: &PlanChoice,
    unserved: &[UnservedPart],
) -> Vec<Cell> {
    let mut rows: Vec<Vec<(&Factor, &FactorLevel)>> = vec![Vec::new()];
    for factor in &experiment.factors {
        let levels: Vec<&FactorLevel> =
            factor.levels.iter().filter(|level| is_run(factor, level, variant, choice)).collect();
        rows = rows
            .iter()
            .flat_map(|row| levels.iter().map(|level| [row.as_slice(), &[(factor, *level)]].concat()))
            .collect();
    }
    rows.retain(|row| row.iter().all(|(_, level)| is_combined(level, row)));
    rows.retain(|row| row.iter().all(|(factor, level)| unserved.iter().all(|part| !part.has(factor, level))));
    // Only a Java machine has a heap to limit and a compiler to do without.
    let is_java = pair.client.run.iter().any(|word| word == HEAP_WORD);
    let needs_java = |level: &FactorLevel| [HEAP, JAVA_CODE].iter().any(|name| level.set.contains_key(*name));
    rows.retain(|row| is_java || row.iter().all(|(_, level)| !needs_java(level)));
    // Only a client that keeps rows has any data left after an interruption.
    let has_rows = pair.client.can(INSERT);
    rows.retain(|row| has_rows || row.iter().all(|(factor, _)| factor.name != INTERRUPTION));
    let demands = |row: &[(&Factor, &FactorLevel)], name: &str, value: &str| {
        row.iter().any(|(_, level)| level.set.get(name).is_some_and(|set| set == value))
    };
    let can_encrypt = pair.encrypting.is_some();
    rows.retain(|row| can_encrypt || !demands(row, TLS, "on"));
    let can_buffer = pair.client.can(BUFFERING) && pair.server.can(BUFFERING);
    rows.retain(|row| can_buffer || !demands(row, BUFFERING, "whole"));
    let can_repeat = pair.server.can(SERVICE);
    let is_repeated = |level: &FactorLevel| level.set.get(SERVICE).is_some_and(|times| times != "1");
    rows.retain(|row| can_repeat || !row.iter().any(|(_, level)| is_repeated(level)));
    let can_open = pair.client.can(FRESH);
    rows.retain(|row| can_open || !demands(row, CONNECTION, FRESH));
    rows.iter().map(|row| cell(experiment, variant, slot, pair, row, choice)).collect()
}

/// Returns true if the other levels of a row are among those with which a level is combined.
fn is_combined(level: &FactorLevel, row: &[(&Factor, &FactorLevel)]) -> bool {
    let allows = |(factor, other): &(&Factor, &FactorLevel)| {
        level.with.get(&factor.name).is_none_or(|levels| levels.contains(&other.level))
    };
    row.iter().all(allows)
}

fn is_run(factor: &Factor, level: &FactorLevel, variant: &str, choice: &PlanChoice) -> bool {
    let named = choice.factors.get(&factor.name);
    let in_profile = level.profiles.is_empty() || level.profiles.contains(&choice.profile);
    let of_variant = level.variants.is_empty() || level.variants.iter().any(|one| one == variant);
    of_variant && named.map_or(in_profile, |levels| levels.contains(&level.level))
}

fn cell(
    experiment: &Experiment,
    variant: &str,
    slot: &PlanSlot,
    pair: &StackPair,
    row: &[(&Factor, &FactorLevel)],
    choice: &PlanChoice,
) -> Cell {
    let mut settings = experiment.settings.clone();
    settings.extend(slot.set.clone());
    let mut levels = BTreeMap::new();
    for (factor, level) in row {
        levels.insert(factor.name.clone(), level.level.clone());
        if level.set.is_empty() && level.cpu_percent.is_none() && level.gateway_link.is_none() {
            settings.insert(factor.name.clone(), level.level.clone());
        }
        settings.extend(level.set.clone());
    }
    if let Some(insert) = settings.get_mut(INSERT) {
        if !pair.client.can(INSERT) {
            NONE.clone_into(insert);
        }
        levels.insert(INSERT.to_owned(), insert.clone());
    }
    let is_encrypted = settings.get(TLS).is_some_and(|level| level == "on");
    let encrypting = pair.encrypting.as_ref().filter(|_| is_encrypted);
    let mut amount = experiment.amount(choice.profile);
    if let Some(forks) = choice.samples.forks {
        amount.forks = forks;
        amount.forks_min = amount.forks_min.min(forks);
    }
    let limited = row.iter().map(|(_, level)| *level).find(|level| level.cpu_percent.is_some());
    amount.warmup = row.iter().find_map(|(_, level)| level.warmup).unwrap_or(amount.warmup);
    let exchange_ms = row.iter().find_map(|(_, level)| level.exchange_ms).unwrap_or(experiment.exchange_ms);
    let interval_ms = amount.interval_ms.unwrap_or(experiment.interval_ms);
    let samples = row.iter().find_map(|(_, level)| level.samples).unwrap_or(amount.samples);
    amount.samples = choice.samples.samples.unwrap_or(samples).saturating_mul(pages(&settings));
    Cell {
        variant: variant.to_owned(),
        experiment: experiment.id.clone(),
        name: experiment.name.clone(),
        op: experiment.op,
        levels,
        settings,
        label: slot.label.clone(),
        stack: pair.stack.clone(),
        client: pair.client.clone(),
        server: encrypting.unwrap_or(&pair.server).clone(),
        gateway: pair.gateway.clone(),
        amount,
        interval_ns: (interval_ms * 1e6) as u64,
        in_flight: experiment.in_flight,
        cpu_percent: limited.and_then(|level| level.cpu_percent),
        cpu_of: limited.map_or(CpuOf::Both, |level| level.cpu_of),
        memory_mib: row.iter().find_map(|(_, level)| level.memory_mib),
        gateway_link: row.iter().find_map(|(_, level)| level.gateway_link.clone()),
        fork_seconds: fork_seconds(exchange_ms, interval_ms, amount, &pair.stack, limited),
    }
}

/// Counts the exchanges of one synchronisation: if a study reads page by page, all pages are one sample.
fn pages(settings: &BTreeMap<String, String>) -> u32 {
    let number = |name: &str| settings.get(name).and_then(|text| text.parse::<u32>().ok());
    number("poi").zip(number("page")).map_or(1, |(all, page)| all.div_ceil(page.max(1)).max(1))
}

/// Estimates the seconds of a fork. Its measured exchanges are held to a share of a processor, and those from which their interval follows.
fn fork_seconds(
    exchange_ms: f64,
    interval_ms: f64,
    amount: Amount,
    stack: &str,
    limited: Option<&FactorLevel>,
) -> f64 {
    let is_ours = stack == "rust";
    let share = limited.and_then(|level| level.cpu_percent).map_or(1.0, |percent| f64::from(percent) / 100.0);
    let exchange = exchange_ms * if is_ours { 1.0 } else { FOREIGN_FACTOR };
    let measured = interval_ms.max(1.5 * exchange / share) * f64::from(amount.samples);
    let has_rest = limited.is_some() && amount.warmup > 0;
    let at_share = if has_rest { amount.at_share() } else { 0 };
    let before =
        exchange * (f64::from(amount.warmup + 1 + u32::from(has_rest)) + f64::from(at_share) / share);
    (measured + before) / 1000.0 + if is_ours { FORK_SECONDS } else { FOREIGN_FORK_SECONDS }
}
