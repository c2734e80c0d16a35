//! Calls operations by their names.

use std::collections::HashMap;
use std::sync::OnceLock;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};

use super::context::FromContext;
use super::reply::IntoRecord;
use super::request::{FromRecord, text_of};
use super::subject::Segments;
use crate::contract::table::{for_each_operation, *};
use crate::contract::{Facts, Operation, Problem, Serve, ServiceResult, json_bytes};
use crate::face::Api;
use crate::face::http::RequestContext;

/// Values by field name: a request or a reply.
pub type Record = Map<String, Value>;

/// Decodes, serves and encodes one operation.
type RecordCall = fn(Api, RequestContext, Record) -> BoxFuture<'static, ServiceResult<Record>>;

/// All operations by name.
#[derive(Debug)]
pub struct Dispatcher(HashMap<&'static str, RecordCall>);

macro_rules! calls {
    ($($operation:ident)*) => {
        HashMap::from([$((<$operation as Operation>::FACTS.name, call::<$operation> as RecordCall)),*])
    };
}

impl Dispatcher {
    /// Returns the dispatcher of all operations.
    pub fn get() -> &'static Self {
        static DISPATCHER: OnceLock<Dispatcher> = OnceLock::new();
        DISPATCHER.get_or_init(|| Self(for_each_operation!(calls)))
    }

    /// Serves an operation; `None` if the name is unknown.
    pub fn call(
        &self,
        name: &str,
        api: &Api,
        context: RequestContext,
        record: Record,
    ) -> Option<BoxFuture<'static, ServiceResult<Record>>> {
        self.0.get(name).map(|call| call(api.clone(), context, record))
    }

    /// Returns true if there is an operation of this name.
    #[must_use]
    pub fn knows(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Returns the static name of an operation; `None` if it is unknown.
    #[must_use]
    pub fn known(&self, name: &str) -> Option<&'static str> {
        self.0.get_key_value(name).map(|(name, _)| *name)
    }
}

fn call<O>(api: Api, context: RequestContext, mut record: Record) -> BoxFuture<'static, ServiceResult<Record>>
where
    O: Operation<By: FromContext, Subject: Segments, Request: FromRecord, Reply: IntoRecord>,
    Api: Serve<O>,
{
    Box::pin(async move {
        let by = O::By::find(&api, &context, &mut record).await?;
        let names = subject_of(&O::FACTS, &mut record)?;
        let mut named = O::FACTS.subject.iter().copied().zip(names.iter().map(String::as_str));
        let subject = O::Subject::read(&mut named)?;
        let request = O::Request::from_record(record, context.key.as_ref(), O::FACTS.name)?;
        if O::FACTS.is_list() {
            context.permit.reserve_reply().await?;
        }
        let reply = Serve::<O>::serve(&api, by, subject, request).await;
        check_refusal(&O::FACTS, &reply);
        let record = reply?.into_record()?;
        let bytes = json_bytes(&record);
        match O::FACTS.is_list() {
            true => context.permit.note_page(bytes)?,
            // The result of a change is always returned, even beyond the limit of the request's replies.
            false => context.permit.note_reply(bytes),
        }
        Ok(record)
    })
}

/// Removes the names of the subject from the record.
fn subject_of(facts: &Facts, record: &mut Record) -> ServiceResult<Vec<String>> {
    let one = |part: &&'static str| text_of(record, part)?.ok_or_else(|| Problem::field(*part, "is missing"));
    facts.subject.iter().map(one).collect()
}

/// Checks the table: in debug builds, panics on an error code that the table does not list for the operation.
pub(in crate::face) fn check_refusal<T>(facts: &Facts, reply: &ServiceResult<T>) {
    if let Err(problem) = reply {
        debug_assert!(facts.may_refuse(problem.code), "{} is refused with {problem}", facts.name);
    }
}
