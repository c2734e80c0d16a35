//! Formats of web services: SOAP 1.1 and 1.2 with WSDL, XML-RPC, plain XML, JSON, Protocol Buffers, and frames with a
//! length in front, and sealed messages of Web Push. Bytes in, values out: no sockets, no clock, no files.
//!
//! Everything that is read is foreign, so every reader takes [`DocumentLimits`] and answers with a [`WireError`]; document types
//! (and with them entities of one's own) are always refused. The same [`Content`] can be carried by each format.
#![forbid(unsafe_code)]

pub mod content;
mod error;
pub mod frame;
pub mod json;
mod limits;
pub mod mcs;
pub mod protobuf;
pub mod soap;
mod value;
pub mod web_push;
pub mod wsdl;
pub mod xml;
pub mod xmlrpc;

pub use content::{Content, Item, Point};
pub use error::WireError;
pub use limits::DocumentLimits;
pub use value::Value;

#[cfg(test)]
mod tests;
