//! Compares the ledger with the counts of the emulators, token by token.
//!
//! Every token is looked up in the counts. Where a count says "accepted once" and nothing else is odd, the ledger is queried for a sample
//! of the devices only: if none that it calls accepted was never accepted by the emulators, and the number of accepted devices is the same,
//! then both mean the same devices. For every other device it is queried.

use super::histories::{self, DeliveryHistory};
use crate::client::ApiClient;
use crate::devices::{DevicePopulation, PopulationMember, StagedService};
use crate::emulator::{Emulator, Emulators};
use crate::ledger::CampaignLedger;
use crate::policy::AnswerPolicy;
use crate::reporter::Reporter;
use std::collections::{HashMap, HashSet};
use stentor_emulators::{Counts, ObserverFile, ObserverTotals};

const MAX_EXAMPLES: usize = 5;
/// The number of devices that are queried although nothing is odd about them.
const SAMPLE: u64 = 1000;
/// If the sums differ, every accepted device is queried, up to this number.
const MAX_SUSPECTS: usize = 200_000;

/// The result of the comparison.
#[derive(Debug, Default)]
pub struct Comparison {
    /// Devices accepted in the ledger and never seen, seen and not in the books, or without a final state.
    pub lost: u64,
    /// Devices with any other contradiction between ledger and emulators.
    pub disagreeing: u64,
    /// Pushes that an emulator accepted beyond the first of each token.
    pub duplicates: u64,
    /// Devices with such pushes that the ledger does not mark as ambiguous.
    pub unmarked_duplicates: u64,
    /// Duplicates of a device, up to the number of its attempts that the ledger calls unanswered.
    pub unanswered_duplicates: u64,
    /// Devices that were queried one by one.
    pub asked: u64,
    /// The counts of each emulator.
    pub counted: HashMap<StagedService, EmulatorCounts>,
    /// Some of the differences.
    pub examples: Vec<String>,
}

/// The counts of one emulator.
#[derive(Clone, Copy, Debug, Default)]
pub struct EmulatorCounts {
    /// Requests that carried a token.
    pub attempts: u64,
    /// Requests answered with success.
    pub accepted: u64,
    /// Requests answered with an error.
    pub rejected: u64,
    /// Tokens accepted at least once.
    pub tokens_accepted: u64,
    /// Tokens that were only ever refused.
    pub tokens_rejected: u64,
    /// Tokens accepted more than once.
    pub tokens_accepted_twice: u64,
    /// Tokens that are no device's.
    pub strangers: u64,
    /// Counts that did not fit into the table.
    pub overflow: u64,
}

/// The inputs of the comparison.
pub struct ComparedCampaign<'a> {
    /// The response policy of the emulators.
    pub policy: AnswerPolicy,
    /// The emulators, with final counts.
    pub emulators: &'a Emulators,
    /// The client of the server.
    pub client: &'a ApiClient,
    /// The devices of the campaign.
    pub population: DevicePopulation,
    /// Devices that received other messages during the campaign.
    pub others: DevicePopulation,
    /// The books of the campaign.
    pub ledger: &'a CampaignLedger,
}

/// Compares ledger and observers, device by device.
pub async fn run(compared: ComparedCampaign<'_>, reporter: &dyn Reporter) -> anyhow::Result<Comparison> {
    let ComparedCampaign { policy, emulators, client, population, others, ledger } = compared;
    let books = ObserverFiles::open(emulators)?;
    let (mut comparison, mut odd) = survey(population, &books);
    let known = |service| others.members().filter(move |member| member.service == service);
    for service in population.services().as_slice().iter().copied() {
        let seen = known(service).filter(|member| books.counts(others, *member) != Counts::default()).count();
        let counted = comparison.counted.entry(service).or_default();
        counted.strangers = counted.strangers.saturating_sub(seen as u64);
    }
    let accepted: u64 = comparison.counted.values().map(|counted| counted.tokens_accepted).sum();
    if accepted != ledger.totals.accepted {
        let suspects = population.members().filter(|member| books.counts(population, *member).accepted > 0);
        odd.extend(suspects.take(MAX_SUSPECTS));
    }
    odd.extend(sample(population));
    let histories = histories::fetch(client, population, &ledger.message, &odd, reporter).await?;
    comparison.asked = odd.len() as u64;
    for member in &odd {
        let is_dead = policy.is_dead(member.service, &population.token(*member));
        comparison.judge(*member, is_dead, books.counts(population, *member), histories.get(member));
    }
    comparison.settle_sums(population, ledger, accepted);
    Ok(comparison)
}

/// Returns some devices, evenly spread over the whole population.
fn sample(population: DevicePopulation) -> impl Iterator<Item = PopulationMember> {
    // A step that shares no divisor with the number of push services meets each of them.
    let count = population.services().as_slice().len() as u64;
    let mut step = (population.devices() / SAMPLE).max(1);
    while (2..=count).any(|divisor| step.is_multiple_of(divisor) && count.is_multiple_of(divisor)) {
        step += 1;
    }
    (0..population.devices()).step_by(step as usize).map(move |place| population.member(place))
}

/// The counts of each emulator.
struct ObserverFiles(HashMap<StagedService, ObserverFile>);

impl ObserverFiles {
    fn open(emulators: &Emulators) -> anyhow::Result<Self> {
        let open = |emulator: &Emulator| Ok((emulator.service(), emulator.counted()?));
        Ok(Self(emulators.all().iter().map(open).collect::<anyhow::Result<_>>()?))
    }

    fn totals(&self, service: StagedService) -> ObserverTotals {
        self.0.get(&service).map(ObserverFile::totals).unwrap_or_default()
    }

    fn counts(&self, population: DevicePopulation, member: PopulationMember) -> Counts {
        let file = self.0.get(&member.service);
        file.map(|file| file.lookup(&population.token(member))).unwrap_or_default()
    }
}

/// Looks every token up. Returns the sums and the devices to be queried in the ledger.
fn survey(population: DevicePopulation, books: &ObserverFiles) -> (Comparison, HashSet<PopulationMember>) {
    let (mut comparison, mut odd) = (Comparison::default(), HashSet::new());
    let mut known: HashMap<StagedService, u64> = HashMap::new();
    for member in population.members() {
        let counts = books.counts(population, member);
        *known.entry(member.service).or_default() += u64::from(counts != Counts::default());
        comparison.counted.entry(member.service).or_default().add(counts);
        comparison.duplicates += u64::from(counts.accepted.saturating_sub(1));
        if counts.accepted != 1 {
            odd.insert(member);
        }
    }
    for service in population.services().as_slice().iter().copied() {
        let totals = books.totals(service);
        let counted = comparison.counted.entry(service).or_default();
        counted.strangers = totals.tokens - known.get(&service).copied().unwrap_or(0);
        counted.overflow = totals.overflow;
    }
    (comparison, odd)
}

impl EmulatorCounts {
    fn add(&mut self, counts: Counts) {
        self.attempts += u64::from(counts.attempts);
        self.accepted += u64::from(counts.accepted);
        self.rejected += u64::from(counts.rejected);
        self.tokens_accepted += u64::from(counts.accepted > 0);
        self.tokens_rejected += u64::from(counts.accepted == 0 && counts.rejected > 0);
        self.tokens_accepted_twice += u64::from(counts.accepted > 1);
    }
}

impl Comparison {
    /// Judges one device by its token, the emulator's counts and the ledger's history.
    fn judge(
        &mut self,
        member: PopulationMember,
        is_dead: bool,
        counts: Counts,
        history: Option<&DeliveryHistory>,
    ) {
        let unanswered = history.map_or(0, |history| history.unanswered);
        self.unanswered_duplicates += u64::from(counts.accepted.saturating_sub(1).min(unanswered));
        let finding = judge(is_dead, counts, history);
        match finding {
            DeviceFinding::Agree => return,
            DeviceFinding::Lost => self.lost += 1,
            DeviceFinding::Disagree => self.disagreeing += 1,
            DeviceFinding::Unmarked => self.unmarked_duplicates += 1,
        }
        if self.examples.len() < MAX_EXAMPLES {
            let (service, number) = (member.service.word(), member.number);
            self.examples.push(format!(
                "{finding:?}: {service} device {number}: emulator accepted {} and refused {} of {} requests, ledger says {history:?}",
                counts.accepted, counts.rejected, counts.attempts
            ));
        }
    }

    /// Adds the differences of the sums beyond the devices that were queried.
    fn settle_sums(&mut self, population: DevicePopulation, ledger: &CampaignLedger, accepted: u64) {
        let explained = self.lost + self.disagreeing;
        let unexplained = accepted.abs_diff(ledger.totals.accepted).saturating_sub(explained);
        self.disagreeing += unexplained;
        self.lost += population.devices().saturating_sub(ledger.audience);
        for counted in self.counted.values() {
            self.disagreeing += counted.strangers + counted.overflow;
        }
    }
}

/// The comparison of ledger and emulator for one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DeviceFinding {
    /// Both agree.
    Agree,
    /// It is lost.
    Lost,
    /// Both contradict each other.
    Disagree,
    /// The device received the message more than once, and the ledger does not mark that as possible.
    Unmarked,
}

/// In this campaign a delivery ends accepted, or rejected when its token is dead, and never otherwise: trouble that
/// passes may refuse a living token for good as little as the loss of an answer may.
fn judge(is_dead: bool, counts: Counts, history: Option<&DeliveryHistory>) -> DeviceFinding {
    let Some(history) = history else { return DeviceFinding::Lost };
    let Some(state) = history.state.as_deref() else { return DeviceFinding::Lost };
    match (state, counts.accepted) {
        ("accepted" | "delivered", 0) => DeviceFinding::Lost,
        ("accepted" | "delivered", _) if is_dead => DeviceFinding::Disagree,
        ("accepted" | "delivered", 2..) if !history.ambiguous => DeviceFinding::Unmarked,
        ("accepted" | "delivered", _) => DeviceFinding::Agree,
        ("rejected", 0) if is_dead && counts.rejected > 0 => DeviceFinding::Agree,
        (_, _) => DeviceFinding::Disagree,
    }
}

#[cfg(test)]
mod tests;
