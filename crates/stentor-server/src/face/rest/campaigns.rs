//! Campaigns and their books.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use stentor_core::campaign::{self, Campaign, CampaignAction, CampaignState, Ledger, ProviderLedger, Tally};
use stentor_core::device::ProviderKind;
use stentor_core::id::{CampaignId, MessageId};
use stentor_core::time::Timestamp;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::auth::AppCaller;
use super::extract::{PathParams, QueryParams};
use super::origin::Via;
use super::page::{Before, next_of};
use super::text::Instant;
use super::{Api, ApiResult};

/// Returns the routes of this noun.
pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(show))
        .routes(routes!(cancel))
        .routes(routes!(pause))
        .routes(routes!(resume))
}

/// Why nothing more is sent.
#[derive(Serialize, ToSchema)]
struct Stop {
    reason: &'static str,
    detail: String,
}

/// A campaign in a list.
#[derive(Serialize, ToSchema)]
struct CampaignSummary {
    #[schema(value_type = String)]
    id: CampaignId,
    #[schema(value_type = String)]
    message: MessageId,
    state: &'static str,
    created_at: Instant,
    due_at: Instant,
    expires_at: Instant,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<Instant>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<Instant>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop: Option<Stop>,
}

/// A piece of the campaigns, newest first.
#[derive(Serialize, ToSchema)]
struct CampaignList {
    campaigns: Vec<CampaignSummary>,
    /// Those that cannot be read, in the same order; absent when there is none. They can be canceled.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Option<Vec<String>>)]
    damaged: Vec<CampaignId>,
    /// Cursor of the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// Deliveries by state; the sum, `delivered` apart, is the audience.
#[derive(Serialize, ToSchema)]
struct Totals {
    queued: u64,
    sending: u64,
    accepted: u64,
    /// Counted inside `accepted`: confirmed by the device.
    delivered: u64,
    rejected: u64,
    expired: u64,
    collapsed: u64,
    canceled: u64,
    failed: u64,
}

/// How many ended for one reason.
#[derive(Serialize, ToSchema)]
struct ReasonCount {
    state: &'static str,
    reason: &'static str,
    count: u64,
}

/// The books at one provider.
#[derive(Serialize, ToSchema)]
#[schema(as = ProviderLedger)]
struct ProviderView {
    #[schema(value_type = String)]
    provider: ProviderKind,
    audience: u64,
    audience_complete: bool,
    totals: Totals,
    attempts: u64,
    ambiguous: u64,
    duplicate_bound: u64,
    /// Present when the campaign was stopped at this provider; the others go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    stop: Option<Stop>,
    reasons: Vec<ReasonCount>,
}

/// The books of a campaign, read in one snapshot.
#[derive(Serialize, ToSchema)]
#[schema(as = Ledger)]
pub(super) struct LedgerView {
    #[schema(value_type = String)]
    campaign: CampaignId,
    #[schema(value_type = String)]
    message: MessageId,
    /// `scheduled`, `running`, `paused`, `canceled`, `stopped` or `finished`.
    state: &'static str,
    created_at: Instant,
    due_at: Instant,
    /// After this nothing of it is sent.
    expires_at: Instant,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<Instant>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<Instant>,
    /// Present when it was stopped as a whole: at a provider at least, and nothing was accepted at any.
    #[serde(skip_serializing_if = "Option::is_none")]
    stop: Option<Stop>,
    /// Devices expanded so far.
    audience: u64,
    /// Whether that is all.
    audience_complete: bool,
    /// Whether every sum is right.
    balanced: bool,
    /// Deliveries that ended, per second since the first was leased.
    rate_per_second: f64,
    totals: Totals,
    /// Attempts at push services so far.
    attempts: u64,
    /// Deliveries of which a duplicate is possible.
    ambiguous: u64,
    /// Sum over crashes of the deliveries found leased and unsettled.
    duplicate_bound: u64,
    providers: Vec<ProviderView>,
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
        let reasons = ledger.reasons.iter().map(|one| ReasonCount {
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
            stop: ledger.stop.clone().map(Stop::from),
            reasons: reasons.collect(),
        }
    }
}

impl From<(Ledger, Timestamp)> for LedgerView {
    fn from((ledger, now): (Ledger, Timestamp)) -> Self {
        let sum = |count: fn(&ProviderLedger) -> u64| ledger.providers.iter().map(count).sum();
        let CampaignSummary {
            id,
            message,
            state,
            created_at,
            due_at,
            expires_at,
            started_at,
            ended_at,
            stop,
        } = ledger.campaign.clone().into();
        Self {
            campaign: id,
            message,
            state,
            created_at,
            due_at,
            expires_at,
            started_at,
            ended_at,
            stop,
            audience: ledger.audience(),
            audience_complete: is_complete(&ledger),
            balanced: ledger.is_balanced(),
            rate_per_second: rate(&ledger, now),
            totals: Totals::of(&ledger.total(), sum(|one| one.delivered)),
            attempts: sum(|one| one.attempts),
            ambiguous: sum(|one| one.ambiguous),
            duplicate_bound: sum(|one| one.duplicate_bound),
            providers: ledger.providers.iter().map(ProviderView::from).collect(),
        }
    }
}

impl From<campaign::Stop> for Stop {
    fn from(stop: campaign::Stop) -> Self {
        Self { reason: stop.reason.as_str(), detail: stop.detail }
    }
}

impl From<Campaign> for CampaignSummary {
    fn from(campaign: Campaign) -> Self {
        Self {
            id: campaign.id,
            message: campaign.id.into(),
            state: campaign.state.as_str(),
            created_at: campaign.created_at.into(),
            due_at: campaign.due_at.into(),
            expires_at: campaign.expires_at.into(),
            started_at: campaign.started_at.map(Instant),
            ended_at: campaign.ended_at.map(Instant),
            stop: campaign.stop.map(Stop::from),
        }
    }
}

/// Lists campaigns, newest first.
#[utoipa::path(get, path = "/v1/campaigns", tag = "campaigns", params(Before), responses((status = 200, body = CampaignList)))]
async fn list(
    State(api): State<Api>,
    AppCaller(caller): AppCaller,
    QueryParams(query): QueryParams<Before>,
) -> ApiResult<Json<CampaignList>> {
    let page =
        query.page(|text| <CampaignId as super::extract::Segment>::read(text).ok().map(CampaignId::raw))?;
    let campaigns = api.service().campaigns(caller, page).await?;
    let damaged = api.service().broken_campaigns(caller, page).await?;
    let next = next_of(&campaigns, page.limit, |campaign| campaign.id.to_string());
    Ok(Json(CampaignList {
        campaigns: campaigns.into_iter().map(CampaignSummary::from).collect(),
        damaged,
        next,
    }))
}

/// Returns the books of a campaign; the id of its message does as well.
#[utoipa::path(get, path = "/v1/campaigns/{campaign}", tag = "campaigns", params(("campaign" = String, Path)), responses((status = 200, body = LedgerView)))]
async fn show(
    State(api): State<Api>,
    AppCaller(caller): AppCaller,
    PathParams(id): PathParams<CampaignId>,
) -> ApiResult<Json<LedgerView>> {
    Ok(Json(api.service().ledger(caller, id).await?.into()))
}

/// Ends a campaign for good: what is queued is canceled, what is in flight settles.
#[utoipa::path(post, path = "/v1/campaigns/{campaign}/cancel", tag = "campaigns", params(("campaign" = String, Path)), responses((status = 200, body = LedgerView)))]
async fn cancel(
    State(api): State<Api>,
    AppCaller(caller): AppCaller,
    Via(from): Via,
    PathParams(id): PathParams<CampaignId>,
) -> ApiResult<Json<LedgerView>> {
    Ok(Json(api.service().act((caller, from), id, CampaignAction::Cancel).await?.into()))
}

/// Holds a campaign; its time to live runs on.
#[utoipa::path(post, path = "/v1/campaigns/{campaign}/pause", tag = "campaigns", params(("campaign" = String, Path)), responses((status = 200, body = LedgerView)))]
async fn pause(
    State(api): State<Api>,
    AppCaller(caller): AppCaller,
    Via(from): Via,
    PathParams(id): PathParams<CampaignId>,
) -> ApiResult<Json<LedgerView>> {
    Ok(Json(api.service().act((caller, from), id, CampaignAction::Pause).await?.into()))
}

/// Lets a paused campaign go on.
#[utoipa::path(post, path = "/v1/campaigns/{campaign}/resume", tag = "campaigns", params(("campaign" = String, Path)), responses((status = 200, body = LedgerView)))]
async fn resume(
    State(api): State<Api>,
    AppCaller(caller): AppCaller,
    Via(from): Via,
    PathParams(id): PathParams<CampaignId>,
) -> ApiResult<Json<LedgerView>> {
    Ok(Json(api.service().act((caller, from), id, CampaignAction::Resume).await?.into()))
}

/// A campaign that has begun names every provider to which something may still come.
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
