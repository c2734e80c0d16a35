//! Import with lines in a stream beside the record.

use super::context::FromContext as _;
use super::dispatch::{Record, check_refusal};
use super::reply::IntoRecord as _;
use crate::contract::import::{ImportRequest, Lines};
use crate::contract::table::ImportDevices;
use crate::contract::{Caller, Operation as _, Serve, ServiceResult};
use crate::decode::decode_value;
use crate::face::Api;
use crate::face::http::RequestContext;

/// Imports devices line by line; the record contains the options.
pub(in crate::face) async fn import_lines(
    api: &Api,
    context: &RequestContext,
    mut options: Record,
    lines: Lines,
) -> ServiceResult<Record> {
    let caller = Caller::find(api, context, &mut options).await?;
    let request = ImportRequest { query: decode_value(options)?, lines };
    let reply = Serve::<ImportDevices>::serve(api, caller, (), request).await;
    check_refusal(&ImportDevices::FACTS, &reply);
    reply?.into_record()
}
