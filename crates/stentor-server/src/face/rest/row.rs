//! One row of the table: the method and path of an operation, served by one dispatcher for all.

use axum::extract::{FromRequestParts, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{MethodFilter, on};
use futures_util::future::BoxFuture;
use utoipa::openapi::path::{OperationBuilder, ParameterBuilder, ParameterIn, Paths};
use utoipa::openapi::{HttpMethod, ObjectBuilder, Required, Type};
use utoipa_axum::router::UtoipaMethodRouter;

use super::asker::Asker;
use super::extract::PathParams;
use super::format::BodyFormat;
use super::records::{NamedSchemas, ReplyRecord, RequestRecord};
use super::reply::ReplyTerms;
use super::{ApiResult, carried};
use crate::contract::{Facts, Operation, Serve};
use crate::face::Api;
use crate::face::http::RequestPermit;
use crate::face::record::{Segments, check_refusal};

const REPEATING: &str = "With the header `Idempotency-Key` (1 to 255 characters of visible ASCII) repeating the request is \
harmless: the same key and the same request get the first reply again, with `Idempotent-Replayed: true`.";

/// An operation that this face can decode and encode.
pub(super) trait RestOperation:
    Operation<By: Asker, Subject: Segments, Request: RequestRecord, Reply: ReplyRecord>
{
}

impl<O> RestOperation for O where
    O: Operation<By: Asker, Subject: Segments, Request: RequestRecord, Reply: ReplyRecord>
{
}

/// Binding of one operation: method, path, handler and description.
pub(super) type RestRow = UtoipaMethodRouter<Api>;

/// Facts of a row beside its operation.
#[derive(Clone, Copy)]
pub(super) struct RowFacts {
    /// Status of success, unless the reply has one of its own.
    pub(super) done: StatusCode,
    /// True if the operation only reads.
    pub(super) is_read: bool,
    /// True if the reply shows the state of the object in the path and has a tag.
    pub(super) has_tag: bool,
}

/// Handler of one operation.
type RowCall = fn(Api, Request, RowFacts) -> BoxFuture<'static, ApiResult<Response>>;

macro_rules! methods {
    ($($(#[doc = $about:literal])+ $name:ident = $method:ident, $status:ident;)*) => {$(
        $(#[doc = $about])+
        pub(super) fn $name<O: RestOperation>(path: &'static str) -> RestRow
        where
            Api: Serve<O>,
        {
            let has_tag = O::Request::IS_CONDITIONAL;
            let facts = RowFacts { done: StatusCode::$status, is_read: false, has_tag };
            row::<O>(HttpMethod::$method, path, facts)
        }
    )*};
}

methods! {
    /// Returns a row that creates or replaces the object in the path.
    put = Put, OK;
    /// Returns a row that changes fields of the object in the path.
    patch = Patch, OK;
    /// Returns a row that performs an action.
    post = Post, OK;
    /// Returns a row that creates an object.
    create = Post, CREATED;
    /// Returns a row that deletes an object.
    delete = Delete, NO_CONTENT;
}

/// Returns a row for a read.
pub(super) fn get<O: RestOperation>(path: &'static str) -> RestRow
where
    Api: Serve<O>,
{
    row::<O>(HttpMethod::Get, path, RowFacts { done: StatusCode::OK, is_read: true, has_tag: true })
}

fn row<O: RestOperation>(method: HttpMethod, path: &'static str, facts: RowFacts) -> RestRow
where
    Api: Serve<O>,
{
    let mut schemas = NamedSchemas::new();
    let operation = describe::<O>(facts.done, &mut schemas);
    let call: RowCall = |api, request, facts| Box::pin(answer::<O>(api, request, facts));
    bind(RowDescription { method, path, operation, schemas }, call, facts)
}

/// Where an operation is, and how it is described.
struct RowDescription {
    method: HttpMethod,
    path: &'static str,
    operation: OperationBuilder,
    schemas: NamedSchemas,
}

/// Binds a described operation to its handler, whose type is the same for all operations, so that the router's code is compiled once.
fn bind(described: RowDescription, call: RowCall, facts: RowFacts) -> RestRow {
    let RowDescription { method, path, operation, schemas } = described;
    let filter = match method {
        HttpMethod::Get => MethodFilter::GET,
        HttpMethod::Put => MethodFilter::PUT,
        HttpMethod::Patch => MethodFilter::PATCH,
        HttpMethod::Delete => MethodFilter::DELETE,
        _ => MethodFilter::POST,
    };
    let handler = move |State(api): State<Api>, request: Request| call(api, request, facts);
    let mut paths = Paths::new();
    paths.add_path_operation(path, vec![method], operation);
    (schemas, paths, on(filter, handler))
}

/// Reads a request, serves it, and writes the reply.
async fn answer<O: RestOperation>(api: Api, request: Request, row: RowFacts) -> ApiResult<Response>
where
    Api: Serve<O>,
{
    let (mut parts, body) = request.into_parts();
    // Authenticate first: a caller without a key learns nothing else and takes no memory for a body.
    let by = O::By::known(&mut parts, &api).await?;
    if O::FACTS.is_list() {
        RequestPermit::of(&parts.extensions)?.reserve_reply().await?;
    }
    let terms = ReplyTerms::of(&parts.headers)?;
    let PathParams(subject) = PathParams::from_request_parts(&mut parts, &api).await?;
    let request = read::<O>(Request::from_parts(parts, body), &api).await?;
    let request = match terms.conditions.of_change() {
        Some(condition) if !row.is_read => request.on_condition(condition)?,
        _ => request,
    };
    let reply = Serve::<O>::serve(&api, by, subject, request).await;
    check_refusal(&O::FACTS, &reply);
    Ok(terms.write::<O>(reply?, row)?)
}

async fn read<O: RestOperation>(request: Request, api: &Api) -> ApiResult<O::Request> {
    let Some(size) = O::Request::BODY else {
        return O::Request::read(request, api, O::FACTS.name).await;
    };
    match BodyFormat::of_request(request.headers())? {
        BodyFormat::Json => O::Request::read(request, api, O::FACTS.name).await,
        format => Ok(carried::read::<O>(request, api, format, size).await?),
    }
}

/// Describes an operation from its entry in the table and from its types.
pub(super) fn describe<O: RestOperation>(done: StatusCode, schemas: &mut NamedSchemas) -> OperationBuilder {
    let (noun, verb) = O::FACTS.noun_and_verb();
    let mut operation =
        OperationBuilder::new().tag(noun).operation_id(Some(verb)).summary(Some(summary(&O::FACTS)));
    for name in O::FACTS.subject {
        let text = ObjectBuilder::new().schema_type(Type::String);
        let parameter = ParameterBuilder::new().name(*name).parameter_in(ParameterIn::Path);
        operation = operation.parameter(parameter.required(Required::True).schema(Some(text)));
    }
    operation = O::By::describe(operation);
    operation = O::Request::describe(operation, schemas);
    O::Reply::describe(operation, done, schemas)
}

/// Returns the description of an operation, including the use of the idempotency key.
fn summary(facts: &Facts) -> String {
    match facts.repeatable {
        true => format!("{}\n{REPEATING}", facts.sentences()),
        false => facts.sentences(),
    }
}
