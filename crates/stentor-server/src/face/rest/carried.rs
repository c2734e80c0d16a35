//! Bodies in XML and Protocol Buffers: the records of the contract, by their shapes and numbers.

use axum::extract::{FromRequestParts as _, RawPathParams, Request};
use stentor_wire::DocumentLimits;
use stentor_wire::xml::dom;

use super::format::BodyFormat;
use super::records::BodySize;
use super::row::RestOperation;
use crate::contract::description::{OperationShape, description};
use crate::contract::{ErrorCode, Facts, Problem, ServiceResult};
use crate::face::Api;
use crate::face::http::body;
use crate::face::http::headers::idempotency_key;
use crate::face::record::protobuf::Schema;
use crate::face::record::xml::{NAMESPACE, read_record, write_record};
use crate::face::record::{FromRecord as _, Record};

/// Maximum number of elements in a document. Each takes some 200 bytes in the parsed tree.
const NODES_MAX_COUNT: usize = 50_000;

/// Reads a request from a body in XML or Protocol Buffers. The body may omit fields that are in the path.
pub(super) async fn read<O: RestOperation>(
    request: Request,
    api: &Api,
    format: BodyFormat,
    size: BodySize,
) -> ServiceResult<O::Request> {
    let key = idempotency_key(request.headers())?;
    let record = record_of(request, api, format, size, &O::FACTS).await?;
    O::Request::from_record(record, key.as_ref(), O::FACTS.name)
}

/// Reads the record of any operation. Not generic, so that it is compiled once.
async fn record_of(
    request: Request,
    api: &Api,
    format: BodyFormat,
    size: BodySize,
    facts: &Facts,
) -> ServiceResult<Record> {
    let (mut parts, body) = request.into_parts();
    let unreadable = |_| Problem::new(ErrorCode::InvalidRequest, "the path is not UTF-8");
    let path = RawPathParams::from_request_parts(&mut parts, api).await.map_err(unreadable)?;
    let max_bytes = size.max_bytes(api);
    let bytes = body::read(Request::from_parts(parts, body), max_bytes).await?;
    let mut record = record(&bytes, format, shape_of(facts.name)?, max_bytes)?;
    for (part, named) in facts.subject.iter().zip(path.iter().map(|(_, named)| named)) {
        without(&mut record, part, named)?;
    }
    Ok(record)
}

/// Removes a field that is also in the path from a record. Fails if the values differ.
fn without(record: &mut Record, part: &'static str, named: &str) -> ServiceResult<()> {
    match record.remove(part) {
        Some(value) if value != named && value != "" && !value.is_null() => {
            Err(Problem::field(part, "differs from the path"))
        }
        _ => Ok(()),
    }
}

fn record(bytes: &[u8], format: BodyFormat, one: &OperationShape, max_bytes: usize) -> ServiceResult<Record> {
    let limits = DocumentLimits { document_max_bytes: max_bytes, ..DocumentLimits::default() };
    if format == BodyFormat::Protobuf {
        return Schema::get().read(&one.request.name, bytes, &limits);
    }
    let limits = DocumentLimits { nodes_max: NODES_MAX_COUNT, ..limits };
    let refused = |error: stentor_wire::WireError| Problem::new(ErrorCode::InvalidRequest, error.to_string());
    let root = dom::parse(bytes, &limits).map_err(refused)?;
    let is_ours = root.namespace.as_deref().is_none_or(|namespace| namespace == NAMESPACE);
    if !is_ours || (root.name != one.facts.type_name && root.name != one.request.name) {
        let detail = format!("the document must be `{}` in the namespace {NAMESPACE}", one.facts.type_name);
        return Err(Problem::new(ErrorCode::InvalidRequest, detail));
    }
    read_record(&root, &one.request, &description().shapes)
}

/// Writes a reply in XML or Protocol Buffers.
pub(super) fn write(operation: &str, reply: &Record, format: BodyFormat) -> ServiceResult<Vec<u8>> {
    let one = shape_of(operation)?;
    match format {
        BodyFormat::Protobuf => Schema::get().write(&one.reply.name, reply),
        _ => {
            let written = write_record(&one.reply.name, reply, &one.reply, &description().shapes).to_bytes();
            written.map_err(|error| {
                tracing::error!(%error, "a reply cannot be written as XML");
                Problem::new(ErrorCode::Internal, "the reply cannot be written as XML")
            })
        }
    }
}

fn shape_of(operation: &str) -> ServiceResult<&'static OperationShape> {
    let found = description().operations.iter().find(|one| one.facts.name == operation);
    found.ok_or_else(|| Problem::not_found("operation"))
}
