//! The faces: encodings of the contract. A face translates between its format and the operations, and contains no business rules.

mod api;
mod console;
pub mod discovery;
pub mod grpc;
pub(crate) mod http;
mod markup;
mod nowhere;
mod read_timeout;
pub mod record;
mod request_limits;
pub mod rest;
pub(crate) mod router;
pub mod soap;
pub mod socket;
mod table;
pub mod xmlrpc;

pub use api::Api;
pub use http::{EntryPoint, EntryRule};
pub use request_limits::RequestLimits;
pub(crate) use rest::write_refusal;
pub use table::{DESCRIPTIONS, FACES, Face, FaceDescription};
