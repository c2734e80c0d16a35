//! The faces: encodings of the contract. A face translates between its format and the operations, and holds no rule.

mod api;
mod http;
mod markup;
pub mod record;
pub mod rest;
pub mod soap;
pub mod xmlrpc;

pub use api::{Api, ApiParts};
pub use http::{ReadTimeout, RequestLimits};

use crate::contract::description::{appended, description};

/// A face, and which operations can be asked through it.
#[derive(Debug, Clone, Copy)]
pub struct Face {
    /// What it is called.
    pub name: &'static str,
    /// Returns whether it carries the operation of a name.
    pub carries: fn(&str) -> bool,
}

/// A description of the contract, in a form that others read.
#[derive(Debug, Clone, Copy)]
pub struct FaceDescription {
    /// What it is called.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// Returns its text.
    pub write: fn() -> String,
}

/// All faces.
pub const FACES: &[Face] = &[
    Face { name: "rest", carries: rest::carries },
    Face { name: "soap", carries: soap::carries },
    Face { name: "xmlrpc", carries: xmlrpc::carries },
];

/// All descriptions that are made from the contract.
pub const DESCRIPTIONS: &[FaceDescription] = &[
    FaceDescription { name: "openapi", about: "REST as OpenAPI 3.1", write: rest::openapi_json },
    FaceDescription { name: "wadl", about: "REST as WADL", write: rest::wadl },
    FaceDescription { name: "wsdl2", about: "REST as WSDL 2.0", write: rest::wsdl2 },
    FaceDescription { name: "wsdl", about: "SOAP as WSDL 1.1, for SOAP 1.1 and 1.2", write: soap::wsdl },
    FaceDescription {
        name: "xmlrpc",
        about: "Methods of XML-RPC, as their introspection tells them",
        write: xmlrpc::introspection,
    },
    FaceDescription {
        name: "numbers",
        about: "Numbers of operations and fields that never change, new ones appended",
        write: || appended(description()),
    },
];
