//! Conditions of changes: what the path names is looked at before it is changed.
//!
//! Changes with a condition at one address go one after the other, so that of several that were made of the same state one
//! goes through. A change without a condition, or through another face, waits for nobody and may come between the look and the
//! change.

use axum::extract::FromRequestParts as _;
use axum::http::Method;
use axum::http::request::Parts;
use futures_util::future::BoxFuture;
use tokio::sync::{Mutex, MutexGuard};

use super::asker::Asker as _;
use super::etag::{Conditions, StateTag, not_comparable};
use super::extract::PathParams;
use super::row::Spoken;
use crate::contract::{ErrorCode, Problem, Serve, ServiceResult, hash};
use crate::face::Api;
use crate::face::http::refusal::Refusal;

/// Changes with a condition that can be made at once; those whose addresses share a turn wait for one another.
const TURNS: usize = 64;

static CHANGES: [Mutex<()>; TURNS] = [const { Mutex::const_new(()) }; TURNS];

/// The turn of a change: nobody else with a condition changes the same until it is dropped.
pub(super) type Turn = Option<MutexGuard<'static, ()>>;

/// Compares what a path names with the conditions of a request.
pub(super) type Check =
    for<'a> fn(&'a Api, &'a mut Parts, &'a Conditions) -> BoxFuture<'a, Result<Turn, Refusal>>;

/// Refuses every condition, where nothing has a state.
pub(super) fn refused<'a>(
    _: &'a Api,
    _: &'a mut Parts,
    _: &'a Conditions,
) -> BoxFuture<'a, Result<Turn, Refusal>> {
    Box::pin(async { Err(not_comparable().into()) })
}

/// Compares what an operation shows with the conditions of a request.
pub(super) fn against<'a, S>(
    api: &'a Api,
    parts: &'a mut Parts,
    conditions: &'a Conditions,
) -> BoxFuture<'a, Result<Turn, Refusal>>
where
    S: Spoken<Request = ()>,
    Api: Serve<S>,
{
    Box::pin(async move {
        let [first, ..] = hash([parts.uri.path().as_bytes()]);
        let turn = CHANGES[usize::from(first) % TURNS].lock().await;
        let by = S::By::known(parts, api).await?;
        let PathParams(subject) = PathParams::from_request_parts(parts, api).await?;
        let shown = Serve::<S>::serve(api, by, subject, ()).await;
        let state = match shown {
            Ok(reply) => Some(StateTag::of(&written(&reply)?)),
            Err(problem) if problem.code == ErrorCode::NotFound && parts.method == Method::PUT => None,
            Err(problem) => return Err(problem.into()),
        };
        conditions.check_change(state.as_ref())?;
        Ok(Some(turn))
    })
}

fn written(reply: &impl serde::Serialize) -> ServiceResult<Vec<u8>> {
    let failed = |_| Problem::new(ErrorCode::Internal, "the reply cannot be written as JSON");
    serde_json::to_vec(reply).map_err(failed)
}
