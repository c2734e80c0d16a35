//! The faces: encodings of the contract. A face translates between its format and the operations, and holds no rule.

mod api;
pub mod grpc;
mod http;
pub mod record;
pub mod rest;
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
    Face { name: "xmlrpc", carries: xmlrpc::carries },
    Face { name: "grpc", carries: grpc::carries },
];

/// All descriptions that are made from the contract.
pub const DESCRIPTIONS: &[FaceDescription] = &[
    FaceDescription { name: "openapi", about: "REST as OpenAPI 3.1", write: rest::openapi_json },
    FaceDescription {
        name: "xmlrpc",
        about: "Methods of XML-RPC, as their introspection tells them",
        write: xmlrpc::introspection,
    },
    FaceDescription {
        name: "proto",
        about: "gRPC and Protocol Buffers as a .proto file",
        write: grpc::proto,
    },
    FaceDescription {
        name: "numbers",
        about: "Numbers of operations and fields that never change, new ones appended",
        write: || appended(description()),
    },
];
