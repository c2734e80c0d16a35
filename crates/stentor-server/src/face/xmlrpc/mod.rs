//! The XML-RPC face at `/rpc`: each operation is a method that takes one struct and returns one.

mod fault;
mod introspection;
mod values;

use axum::extract::{Request, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use stentor_wire::xmlrpc::{
    Call, MULTICALL, RpcOutcome, calls_of_multicall, multicall_result, read_call, write_response,
};
use stentor_wire::{DocumentLimits, Value};

use super::Api;
use super::http::auth::context_of;
use super::http::refusal::{Refusal, WriteRefusal};
use super::http::{EntryRule, LimitedRouter, Routes, body};
use super::record::{Dispatcher, RequestContext};
use crate::contract::{ErrorCode, Problem, ServiceResult};
use fault::{fault, no_such_method, unreadable};

pub(super) use fault::document as fault_document;
pub use introspection::introspection;

const TEXT_XML: &str = "text/xml; charset=utf-8";
/// Maximum number of calls in one `system.multicall`.
const CALLS_MAX_COUNT: usize = 1_000;

/// Returns true if the named operation has a method.
#[must_use]
pub fn carries(operation: &str) -> bool {
    Dispatcher::get().knows(operation)
}

/// Builds the routes of this face.
pub(super) fn router(api: &Api) -> LimitedRouter {
    let write: WriteRefusal = fault::write;
    Routes::new().route("/rpc", post(answer)).limited(api, api.clone(), EntryRule::Keyed, write)
}

async fn answer(State(api): State<Api>, request: Request) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    // Authenticate first: a caller without a key learns nothing else and takes no memory for a body.
    let context = context_of(&parts, &api).await?;
    let bytes = body::read(Request::from_parts(parts, body), api.large_body_max_bytes()).await?;
    let answer = answer_document(&api, &context, &bytes).await?;
    Ok(([(header::CONTENT_TYPE, TEXT_XML)], answer).into_response())
}

/// Responds to a call document, over any transport.
pub(super) async fn answer_document(
    api: &Api,
    context: &RequestContext,
    document: &[u8],
) -> ServiceResult<Vec<u8>> {
    let limits =
        DocumentLimits { document_max_bytes: api.large_body_max_bytes(), ..DocumentLimits::default() };
    let call = read_call(document, &limits).map_err(unreadable)?;
    let outcome = match call.method.as_str() {
        MULTICALL => Ok(multicall_result(call_each(api, context, &call).await?)),
        _ => call_one(api, context, call).await,
    };
    written(&outcome)
}

/// Serves the calls in order. A refused call does not affect the others.
async fn call_each(api: &Api, context: &RequestContext, call: &Call) -> ServiceResult<Vec<RpcOutcome>> {
    let calls = calls_of_multicall(call).map_err(unreadable)?;
    if calls.len() > CALLS_MAX_COUNT {
        return Err(Problem::new(
            ErrorCode::PayloadTooLarge,
            format!("at most {CALLS_MAX_COUNT} calls in one"),
        ));
    }
    let mut outcomes = Vec::with_capacity(calls.len());
    for call in calls {
        outcomes.push(match call {
            Ok(call) => match context.permit.require_reply_room() {
                Ok(()) => call_one(api, context, call).await,
                Err(problem) => Err(fault::fault(&problem)),
            },
            Err(fault) => Err(fault),
        });
    }
    Ok(outcomes)
}

async fn call_one(api: &Api, context: &RequestContext, call: Call) -> RpcOutcome {
    // The dispatcher counts its replies itself; replies of this face are counted here.
    if let Some(found) = introspection::answer(&call) {
        context.permit.note_reply(found.as_ref().map_or_else(|fault| fault.text.len(), values::text_bytes));
        return found;
    }
    if !Dispatcher::get().knows(&call.method) {
        return Err(no_such_method(&call.method));
    }
    dispatched(api, context, call).await.map_err(|problem| {
        context.permit.note_reply(problem.text_bytes());
        fault(&problem)
    })
}

async fn dispatched(
    api: &Api,
    context: &RequestContext,
    Call { method, params }: Call,
) -> ServiceResult<Value> {
    let record = values::record(params, &method)?;
    let call = Dispatcher::get().call(&method, api, context.clone(), record);
    let call = call.ok_or_else(|| Problem::not_found("method"))?;
    Ok(values::value(serde_json::Value::Object(call.await?)))
}

fn written(outcome: &RpcOutcome) -> ServiceResult<Vec<u8>> {
    write_response(outcome).map_err(|error| {
        tracing::error!(%error, "a reply cannot be written as XML-RPC");
        Problem::new(ErrorCode::Internal, "the reply cannot be written as XML-RPC")
    })
}
