//! The faces: encodings of the contract. A face translates between its format and the operations, and holds no rule.

mod api;
mod http;
pub mod rest;

pub use api::{Api, ApiParts};
pub use http::{ReadTimeout, RequestLimits};
