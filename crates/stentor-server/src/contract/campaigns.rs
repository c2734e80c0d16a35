//! Campaigns and their ledgers.

use serde::Serialize;
use stentor_core::campaign::{self, Campaign, CampaignState, Ledger, ProviderLedger, Tally};
use stentor_core::device::ProviderKind;
use stentor_core::id::{CampaignId, MessageId};
use stentor_core::message::Message;
use stentor_core::target::Target;
use stentor_core::time::Timestamp;
use utoipa::ToSchema;

use super::Instant;

/// Maximum characters of a title or a condition in a list.
const SHOWN_MAX_CHARS: usize = 80;

/// Reason for which sending was stopped early.
#[derive(Serialize, ToSchema)]
#[schema(as = Stop)]
pub struct StopView {
    pub(crate) reason: &'static str,
    pub(crate) detail: String,
}

/// A campaign in a list.
#[derive(Serialize, ToSchema)]
pub struct CampaignSummary {
    #[schema(value_type = String)]
    pub(crate) id: CampaignId,
    #[schema(value_type = String)]
    pub(crate) message: MessageId,
    /// `scheduled`, `running`, `paused`, `canceled`, `stopped` or `finished`.
    pub(crate) state: &'static str,
    pub(crate) created_at: Instant,
    pub(crate) due_at: Instant,
    pub(crate) expires_at: Instant,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) started_at: Option<Instant>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ended_at: Option<Instant>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stop: Option<StopView>,
    /// The target in words, such as `topic news`; absent if the message cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) target: Option<String>,
    /// Beginning of the notification's title, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) title: Option<String>,
    /// Devices expanded so far.
    pub(crate) audience: u64,
    /// True if the audience is fully expanded.
    pub(crate) audience_complete: bool,
    pub(crate) totals: Totals,
}

/// Reason for which sending pauses at present, for the whole campaign or at one of its providers.
#[derive(Serialize, ToSchema)]
#[schema(as = Wait)]
pub struct WaitView {
    /// `scheduled`, `paused`, `quota`, or the reason for which the provider's lane is parked, such as `throttled` or `unavailable`.
    pub(crate) reason: &'static str,
    /// The waiting provider; absent if the whole campaign waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub(crate) provider: Option<ProviderKind>,
    pub(crate) detail: String,
    /// Time at which sending resumes; absent if none is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) until: Option<Instant>,
}

/// A page of the campaigns, newest first.
#[derive(Serialize, ToSchema)]
pub struct CampaignList {
    pub(crate) campaigns: Vec<CampaignSummary>,
    /// Campaigns that cannot be read, in the same order; absent if there are none. They can be canceled.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Option<Vec<String>>)]
    pub(crate) damaged: Vec<CampaignId>,
    /// Cursor of the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
}

/// Deliveries by state. Their sum, without `delivered`, is the audience.
#[derive(Serialize, ToSchema)]
pub struct Totals {
    pub(crate) queued: u64,
    pub(crate) sending: u64,
    pub(crate) accepted: u64,
    /// Deliveries confirmed by the device; also counted in `accepted`.
    pub(crate) delivered: u64,
    pub(crate) rejected: u64,
    pub(crate) expired: u64,
    pub(crate) collapsed: u64,
    pub(crate) canceled: u64,
    pub(crate) failed: u64,
}

/// Number of deliveries that ended in a state for one reason.
#[derive(Serialize, ToSchema)]
#[schema(as = ReasonCount)]
pub struct ReasonCountView {
    pub(crate) state: &'static str,
    pub(crate) reason: &'static str,
    pub(crate) count: u64,
}

/// The campaign's ledger at one provider.
#[derive(Serialize, ToSchema)]
#[schema(as = ProviderLedger)]
pub struct ProviderView {
    #[schema(value_type = String)]
    pub(crate) provider: ProviderKind,
    pub(crate) audience: u64,
    pub(crate) audience_complete: bool,
    pub(crate) totals: Totals,
    pub(crate) attempts: u64,
    pub(crate) ambiguous: u64,
    pub(crate) duplicate_bound: u64,
    /// Present if the campaign was stopped at this provider while the others continue, and if it was canceled while its audience was still
    /// being expanded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stop: Option<StopView>,
    pub(crate) reasons: Vec<ReasonCountView>,
}

/// The ledger of a campaign, read in one snapshot.
#[derive(Serialize, ToSchema)]
#[schema(as = Ledger)]
pub struct LedgerView {
    #[schema(value_type = String)]
    pub(crate) campaign: CampaignId,
    #[schema(value_type = String)]
    pub(crate) message: MessageId,
    /// `scheduled`, `running`, `paused`, `canceled`, `stopped` or `finished`.
    pub(crate) state: &'static str,
    pub(crate) created_at: Instant,
    pub(crate) due_at: Instant,
    /// Nothing is sent after this instant.
    pub(crate) expires_at: Instant,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) started_at: Option<Instant>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ended_at: Option<Instant>,
    /// Present if the campaign was stopped as a whole: at one provider at least, with nothing accepted at any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stop: Option<StopView>,
    /// Devices expanded so far.
    pub(crate) audience: u64,
    /// True if no more devices will be added. At a provider with a `stop`, the full audience may have been larger.
    pub(crate) audience_complete: bool,
    /// True if all sums of the ledger are consistent.
    pub(crate) balanced: bool,
    /// Deliveries ended per second, since the first lease.
    pub(crate) rate_per_second: f64,
    pub(crate) totals: Totals,
    /// Attempts at push services so far.
    pub(crate) attempts: u64,
    /// Deliveries that may have been duplicated.
    pub(crate) ambiguous: u64,
    /// Upper bound of duplicates: the sum, over all crashes, of deliveries found leased and unsettled.
    pub(crate) duplicate_bound: u64,
    pub(crate) providers: Vec<ProviderView>,
    /// Reasons for which the campaign, or its sending at some providers, stands still; absent while it makes progress.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Option<Vec<WaitView>>)]
    pub(crate) waits: Vec<WaitView>,
}

impl Totals {
    const fn of(tally: &Tally, delivered: u64) -> Self {
        Self {
            queued: tally.queued,
            sending: tally.sending,
            accepted: tally.accepted,
            delivered,
            rejected: tally.rejected,
            expired: tally.expired,
            collapsed: tally.collapsed,
            canceled: tally.canceled,
            failed: tally.failed,
        }
    }
}

impl From<&ProviderLedger> for ProviderView {
    fn from(ledger: &ProviderLedger) -> Self {
        let reasons = ledger.reasons.iter().map(|one| ReasonCountView {
            state: one.state.as_str(),
            reason: one.reason.as_str(),
            count: one.count,
        });
        Self {
            provider: ledger.provider,
            audience: ledger.audience,
            audience_complete: ledger.audience_complete,
            totals: Totals::of(&ledger.tally, ledger.delivered),
            attempts: ledger.attempts,
            ambiguous: ledger.ambiguous,
            duplicate_bound: ledger.duplicate_bound,
            stop: ledger.stop.clone().map(StopView::from),
            reasons: reasons.collect(),
        }
    }
}

impl LedgerView {
    /// Shows a ledger as read at an instant.
    pub(crate) fn new(ledger: Ledger, waits: Vec<WaitView>, now: Timestamp) -> Self {
        let sum = |count: fn(&ProviderLedger) -> u64| ledger.providers.iter().map(count).sum();
        let campaign = &ledger.campaign;
        Self {
            campaign: campaign.id,
            message: campaign.id.into(),
            state: campaign.state.as_str(),
            created_at: campaign.created_at.into(),
            due_at: campaign.due_at.into(),
            expires_at: campaign.expires_at.into(),
            started_at: campaign.started_at.map(Instant),
            ended_at: campaign.ended_at.map(Instant),
            stop: campaign.stop.clone().map(StopView::from),
            audience: ledger.audience(),
            audience_complete: is_complete(&ledger),
            balanced: ledger.is_balanced(),
            rate_per_second: rate(&ledger, now),
            totals: Totals::of(&ledger.total(), sum(|one| one.delivered)),
            attempts: sum(|one| one.attempts),
            ambiguous: sum(|one| one.ambiguous),
            duplicate_bound: sum(|one| one.duplicate_bound),
            providers: ledger.providers.iter().map(ProviderView::from).collect(),
            waits,
        }
    }
}

impl From<campaign::Stop> for StopView {
    fn from(stop: campaign::Stop) -> Self {
        Self { reason: stop.reason.as_str(), detail: stop.detail }
    }
}

impl CampaignSummary {
    /// Shows a campaign with its totals and with the title and target of its message, if that can be read.
    pub(crate) fn new(campaign: Campaign, message: Option<&Message>, sums: Vec<ProviderLedger>) -> Self {
        let spec = message.map(|message| &message.spec);
        let notification = spec.and_then(|spec| spec.content.notification.as_ref());
        let ledger = Ledger { campaign, providers: sums };
        let delivered = ledger.providers.iter().map(|one| one.delivered).sum();
        Self {
            target: spec.map(|spec| target_words(&spec.target)),
            title: notification.and_then(|one| one.title.as_deref()).map(beginning),
            audience: ledger.audience(),
            audience_complete: is_complete(&ledger),
            totals: Totals::of(&ledger.total(), delivered),
            id: ledger.campaign.id,
            message: ledger.campaign.id.into(),
            state: ledger.campaign.state.as_str(),
            created_at: ledger.campaign.created_at.into(),
            due_at: ledger.campaign.due_at.into(),
            expires_at: ledger.campaign.expires_at.into(),
            started_at: ledger.campaign.started_at.map(Instant),
            ended_at: ledger.campaign.ended_at.map(Instant),
            stop: ledger.campaign.stop.map(StopView::from),
        }
    }
}

/// Describes a target in a few words, without a push token.
fn target_words(target: &Target) -> String {
    match target {
        Target::Device(device) => format!("device {device}"),
        Target::Devices(devices) => format!("{} devices", devices.len()),
        Target::Token(token) => format!("a token of {}", token.provider),
        Target::User(user) => format!("user {}", user.as_str()),
        Target::Group(group) => format!("group {}", group.as_str()),
        Target::Topic(topic) => format!("topic {}", topic.as_str()),
        Target::Condition(condition) => format!("condition {}", beginning(condition.as_str())),
        Target::Everyone => "everyone".to_owned(),
    }
}

/// Returns the beginning of a text.
fn beginning(text: &str) -> String {
    match text.char_indices().nth(SHOWN_MAX_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Returns true if every provider's audience is complete. A started campaign lists each provider that may still get an audience.
fn is_complete(ledger: &Ledger) -> bool {
    let waits = matches!(ledger.campaign.state, CampaignState::Scheduled | CampaignState::Paused);
    let known = !ledger.providers.is_empty() || !waits;
    known && ledger.providers.iter().all(|one| one.audience_complete)
}

fn rate(ledger: &Ledger, now: Timestamp) -> f64 {
    let Some(start) = ledger.campaign.started_at else { return 0.0 };
    let span = ledger.campaign.ended_at.unwrap_or(now).since(start).as_secs_f64().max(0.001);
    let total = ledger.total();
    let ended = (total.sum() - total.open()) as f64;
    (ended / span * 10.0).round() / 10.0
}
