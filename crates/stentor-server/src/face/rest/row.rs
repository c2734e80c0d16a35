//! One row of the table: how an operation is asked over HTTP, by one dispatcher for all.

use axum::extract::{FromRequestParts, Request, State};
use axum::handler::Handler;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{MethodFilter, on};
use utoipa::openapi::path::{OperationBuilder, ParameterBuilder, ParameterIn, Paths};
use utoipa::openapi::{HttpMethod, ObjectBuilder, Required, Type};
use utoipa_axum::router::UtoipaMethodRouter;

use super::ApiResult;
use super::asker::Asker;
use super::extract::PathParams;
use super::records::{ReplyRecord, RequestRecord, Schemas};
use crate::contract::{Facts, Operation, Serve};
use crate::face::Api;
use crate::face::record::{Segments, check_refusal};

const REPEATING: &str = "With the header `Idempotency-Key` (1 to 255 characters of visible ASCII) repeating the request is \
harmless: the same key and the same request get the first reply again, with `Idempotent-Replayed: true`.";

/// An operation that this face can read and write.
pub(super) trait Spoken:
    Operation<By: Asker, Subject: Segments, Request: RequestRecord, Reply: ReplyRecord>
{
}

impl<O> Spoken for O where
    O: Operation<By: Asker, Subject: Segments, Request: RequestRecord, Reply: ReplyRecord>
{
}

/// How one operation is asked: a method, a path, what serves it, and its description.
pub(super) type Row = UtoipaMethodRouter<Api>;

macro_rules! methods {
    ($($(#[doc = $about:literal])+ $name:ident = $method:ident, $status:ident;)*) => {$(
        $(#[doc = $about])+
        pub(super) fn $name<O: Spoken>(path: &'static str) -> Row
        where
            Api: Serve<O>,
        {
            let done = StatusCode::$status;
            let handler = move |State(api): State<Api>, request: Request| answer::<O>(api, request, done);
            let mut schemas = Schemas::new();
            let operation = describe::<O>(done, &mut schemas);
            bind((HttpMethod::$method, path), (operation, schemas), handler)
        }
    )*};
}

methods! {
    /// Returns a row that reads.
    get = Get, OK;
    /// Returns a row that puts what the path names.
    put = Put, OK;
    /// Returns a row that asks for something to be done.
    post = Post, OK;
    /// Returns a row that makes something new.
    create = Post, CREATED;
    /// Returns a row that changes a part.
    patch = Patch, OK;
    /// Returns a row that removes.
    delete = Delete, NO_CONTENT;
}

/// Binds a described operation to a method, a path and a handler.
pub(super) fn bind<H, T>(
    (method, path): (HttpMethod, &'static str),
    (operation, schemas): (OperationBuilder, Schemas),
    handler: H,
) -> Row
where
    H: Handler<T, Api>,
    T: 'static,
{
    let filter = match method {
        HttpMethod::Get => MethodFilter::GET,
        HttpMethod::Put => MethodFilter::PUT,
        HttpMethod::Patch => MethodFilter::PATCH,
        HttpMethod::Delete => MethodFilter::DELETE,
        _ => MethodFilter::POST,
    };
    let mut paths = Paths::new();
    paths.add_path_operation(path, vec![method], operation);
    (schemas, paths, on(filter, handler))
}

/// Reads a request, has it served, and writes the reply.
async fn answer<O: Spoken>(api: Api, request: Request, done: StatusCode) -> ApiResult<Response>
where
    Api: Serve<O>,
{
    let (mut parts, body) = request.into_parts();
    // The key first: whoever has none learns nothing of the rest, and takes no memory for a body.
    let by = O::By::known(&mut parts, &api).await?;
    let PathParams(subject) = PathParams::from_request_parts(&mut parts, &api).await?;
    let request = O::Request::read(Request::from_parts(parts, body), &api, O::FACTS.name).await?;
    let reply = Serve::<O>::serve(&api, by, subject, request).await;
    check_refusal(&O::FACTS, &reply);
    Ok(reply?.respond(done))
}

/// Describes an operation from what the table says and from its types.
pub(super) fn describe<O: Spoken>(done: StatusCode, schemas: &mut Schemas) -> OperationBuilder {
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

/// Returns what an operation does, and how it is repeated here.
fn summary(facts: &Facts) -> String {
    match facts.repeatable {
        true => format!("{}\n{REPEATING}", facts.sentences()),
        false => facts.sentences(),
    }
}
