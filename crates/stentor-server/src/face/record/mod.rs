//! Common parts of faces with flat records. One dispatcher resolves the caller, decodes subject and request, serves the operation, and
//! returns the reply as a record.

mod context;
mod dispatch;
mod import;
pub mod protobuf;
mod reply;
mod request;
mod subject;
pub mod xml;

pub use super::http::RequestContext;
pub(in crate::face) use dispatch::check_refusal;
pub use dispatch::{Dispatcher, Record};
pub(in crate::face) use import::import_lines;
pub(in crate::face) use reply::IntoRecord;
pub(in crate::face) use request::FromRecord;
pub(in crate::face) use subject::Segments;
