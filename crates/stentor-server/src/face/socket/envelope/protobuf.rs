//! Numbered requests and replies as Protocol Buffers. Records are encoded as bytes, by the shape of the operation.

use stentor_core::name::IdempotencyKey;
use stentor_wire::protobuf::fields::{
    WireValue, put_field, put_number, read_delimited, read_key, read_varint, skip,
};
use stentor_wire::{DocumentLimits, WireError};

use super::{SocketRequest, Unread, operation_of};
use crate::contract::description::{OperationShape, description};
use crate::contract::{ErrorCode, Problem, ServiceResult};
use crate::face::record::Record;
use crate::face::record::protobuf::Schema;

/// Field numbers of a request, which never change.
mod request {
    pub(super) const ID: u32 = 1;
    pub(super) const OPERATION: u32 = 2;
    pub(super) const OPERATION_NUMBER: u32 = 3;
    pub(super) const RECORD: u32 = 4;
    pub(super) const IDEMPOTENCY_KEY: u32 = 5;
}

/// Field numbers of a reply, which never change.
mod reply {
    pub(super) const ID: u32 = 1;
    pub(super) const REPLY: u32 = 2;
    pub(super) const ERROR: u32 = 3;
}

/// Field numbers of an error, which never change.
mod error {
    pub(super) const CODE: u32 = 1;
    pub(super) const NUMBER: u32 = 2;
    pub(super) const FIELD: u32 = 3;
    pub(super) const DETAIL: u32 = 4;
    pub(super) const HINT: u32 = 5;
    pub(super) const RETRY_AFTER_SECONDS: u32 = 6;
}

/// A request as its bytes contain it. Of duplicate fields, the last counts.
#[derive(Default)]
struct ProtobufRequestFrame<'a> {
    id: u64,
    operation: &'a [u8],
    number: u64,
    record: &'a [u8],
    key: &'a [u8],
}

/// Decodes a request.
pub(super) fn read(frame: &[u8]) -> Result<SocketRequest, Unread> {
    let mut read = ProtobufRequestFrame::default();
    let request = read.fill(frame).map_err(malformed).and_then(|()| read.request());
    request.map_err(|problem| Unread { id: read.id, problem })
}

/// Encodes the reply to a request for the named operation.
pub(super) fn write(id: u64, operation: &str, reply: &Result<Record, Problem>) -> Vec<u8> {
    let mut out = Vec::new();
    put_number(reply::ID, id, &mut out);
    let written = reply.as_ref().map_err(Clone::clone).and_then(|reply| record(operation, reply));
    match written {
        Ok(record) => put_field(reply::REPLY, &record, &mut out),
        Err(problem) => put_field(reply::ERROR, &error_of(&problem), &mut out),
    }
    out
}

fn record(operation: &str, reply: &Record) -> ServiceResult<Vec<u8>> {
    let missing = || Problem::new(ErrorCode::Internal, "the reply has no shape");
    Schema::get().write(&shape(operation).ok_or_else(missing)?.reply.name, reply)
}

fn shape(operation: &str) -> Option<&'static OperationShape> {
    description().operations.iter().find(|one| one.facts.name == operation)
}

fn error_of(problem: &Problem) -> Vec<u8> {
    let mut out = Vec::new();
    let hint = problem.hint_with(str::to_owned).unwrap_or_default();
    put_field(error::CODE, problem.code.as_str().as_bytes(), &mut out);
    put_number(error::NUMBER, u64::from(problem.code.number().unsigned_abs()), &mut out);
    for (number, text) in [
        (error::FIELD, problem.field.as_deref().unwrap_or_default()),
        (error::DETAIL, &problem.detail),
        (error::HINT, &hint),
    ] {
        if !text.is_empty() {
            put_field(number, text.as_bytes(), &mut out);
        }
    }
    if let Some(seconds) = problem.retry_after_seconds {
        put_number(error::RETRY_AFTER_SECONDS, seconds.into(), &mut out);
    }
    out
}

impl<'a> ProtobufRequestFrame<'a> {
    /// Decodes the fields. Unknown ones are skipped, as the format requires.
    fn fill(&mut self, mut bytes: &'a [u8]) -> Result<(), WireError> {
        while !bytes.is_empty() {
            match read_key(&mut bytes)? {
                (request::ID, WireValue::Varint) => self.id = read_varint(&mut bytes)?,
                (request::OPERATION, WireValue::Delimited) => self.operation = read_delimited(&mut bytes)?,
                (request::OPERATION_NUMBER, WireValue::Varint) => self.number = read_varint(&mut bytes)?,
                (request::RECORD, WireValue::Delimited) => self.record = read_delimited(&mut bytes)?,
                (request::IDEMPOTENCY_KEY, WireValue::Delimited) => self.key = read_delimited(&mut bytes)?,
                (_, wire) => skip(wire, &mut bytes)?,
            }
        }
        Ok(())
    }

    fn request(&self) -> ServiceResult<SocketRequest> {
        let Self { id, record, .. } = *self;
        if id == 0 {
            return Err(Problem::field("id", "must be at least 1"));
        }
        let operation = self.operation()?;
        let key = Some(text("idempotency_key", self.key)?).filter(|key| !key.is_empty());
        let key = key.map(IdempotencyKey::new).transpose()?;
        let limits = DocumentLimits::default();
        // An unknown operation is reported later, as in every encoding.
        let read = |shape: &OperationShape| Schema::get().read(&shape.request.name, record, &limits);
        let record = shape(&operation).map(read).transpose()?.unwrap_or_default();
        Ok(SocketRequest { id, operation, record, key })
    }

    fn operation(&self) -> ServiceResult<String> {
        let name = text("operation", self.operation)?;
        if !name.is_empty() || self.number == 0 {
            return Ok(name.to_owned());
        }
        let wrong = || Problem::field("operation_number", "must be the number of an operation");
        operation_of(self.number).map(str::to_owned).ok_or_else(wrong)
    }
}

fn text<'a>(name: &str, bytes: &'a [u8]) -> ServiceResult<&'a str> {
    std::str::from_utf8(bytes).map_err(|_| Problem::field(name, "must be UTF-8"))
}

fn malformed(error: WireError) -> Problem {
    Problem::new(ErrorCode::InvalidRequest, format!("the request cannot be read: {error}"))
}
