//! Watch of a campaign's ledger until the campaign has ended.

use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::response::Response;
use stentor_wire::DocumentLimits;

use super::watch::{RunningWatch, WatchSubject, WatchedState};
use super::{only_message, refused_type};
use crate::contract::streams::WATCH;
use crate::contract::{ErrorCode, Problem, ServiceResult};
use crate::face::Api;
use crate::face::http::auth::context_of;
use crate::face::http::refusal::Refusal;
use crate::face::record::protobuf::Schema;
use crate::face::record::{Dispatcher, Record};
use crate::shares::ShareExhausted;

/// Maximum size of a request, which contains an id and an app.
const QUESTION_MAX_BYTES: usize = 4_096;

/// Responds with the ledger, and again after each change.
pub(super) async fn answer(State(api): State<Api>, request: Request) -> Result<Response, Refusal> {
    if let Some(refused) = refused_type(request.headers()) {
        return Ok(refused);
    }
    let (parts, body) = request.into_parts();
    let context = context_of(&parts, &api).await?;
    // If the operator's key names an app, the request is charged to that app.
    if let Some(app) = context.app {
        context.permit.own(app)?;
    }
    let place = api.limits().watches.take(context.permit.owner(), 1).map_err(no_place)?;
    let request = Request::from_parts(parts.clone(), body);
    let message = only_message(request, QUESTION_MAX_BYTES).await?;
    let record = format!("{}Request", WATCH.type_name);
    let record = Schema::get().read(&record, &message, &DocumentLimits::default())?;
    let watched = WatchedLedger { api, parts: parts.clone(), record };
    Ok(RunningWatch::new(watched, &parts, place)?.answer().await?)
}

fn no_place(spent: ShareExhausted) -> Problem {
    let detail = format!("as many ledgers{} are watched as are allowed at once", spent.whose());
    Problem::new(ErrorCode::RateLimited, detail)
}

/// Watched ledger of one campaign. Each read authenticates again, so that the watch ends when the key is deleted.
struct WatchedLedger {
    api: Api,
    parts: Parts,
    record: Record,
}

impl WatchSubject for WatchedLedger {
    async fn look(&mut self) -> ServiceResult<WatchedState> {
        let context = context_of(&self.parts, &self.api).await?;
        let dispatched = Dispatcher::get().call(WATCH.operation, &self.api, context, self.record.clone());
        let ledger = dispatched.ok_or_else(|| Problem::not_found("method"))?.await?;
        let is_last = ledger.get("ended_at").is_some_and(|ended_at| !ended_at.is_null());
        Ok(WatchedState { message: Schema::get().write("Ledger", &ledger)?, is_last })
    }
}
