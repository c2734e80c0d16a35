//! The tables of all faces and of all descriptions.

use super::{grpc, rest, soap, socket, xmlrpc};
use crate::contract::description::{appended, description};

/// A face and the operations that it offers.
#[derive(Debug, Clone, Copy)]
pub struct Face {
    /// Name of the description.
    pub name: &'static str,
    /// Path under the API's address; `None` for a face with an address of its own.
    pub path: Option<&'static str>,
    /// Name of the description from which a client is written.
    pub description: &'static str,
    /// Names of equivalent descriptions in other forms.
    pub others: &'static [&'static str],
    /// Returns true if the face offers the named operation.
    pub carries: fn(&str) -> bool,
}

/// A description of the contract in a standard format.
#[derive(Debug, Clone, Copy)]
pub struct FaceDescription {
    /// Name of the description.
    pub name: &'static str,
    /// One-line summary.
    pub about: &'static str,
    /// Media type of its text.
    pub media_type: &'static str,
    /// Writes its text.
    pub write: fn() -> String,
}

/// All faces.
pub const FACES: &[Face] = &[
    Face {
        name: "rest",
        path: Some("/v1"),
        description: "openapi",
        others: &["wadl", "wsdl2"],
        carries: rest::carries,
    },
    Face { name: "xmlrpc", path: Some("/rpc"), description: "xmlrpc", others: &[], carries: xmlrpc::carries },
    Face { name: "socket", path: None, description: "socket", others: &[], carries: socket::carries },
    Face { name: "soap", path: Some("/soap"), description: "wsdl", others: &[], carries: soap::carries },
    Face {
        name: "grpc",
        path: Some("/stentor.v1"),
        description: "proto",
        others: &[],
        carries: grpc::carries,
    },
];

/// All descriptions generated from the contract.
pub const DESCRIPTIONS: &[FaceDescription] = &[
    FaceDescription {
        name: "openapi",
        about: "REST as OpenAPI 3.1",
        media_type: "application/json",
        write: rest::openapi_json,
    },
    FaceDescription { name: "wadl", about: "REST as WADL", media_type: "application/xml", write: rest::wadl },
    FaceDescription {
        name: "wsdl2",
        about: "REST as WSDL 2.0",
        media_type: "application/xml",
        write: rest::wsdl2,
    },
    FaceDescription {
        name: "wsdl",
        about: "SOAP as WSDL 1.1, for SOAP 1.1 and 1.2",
        media_type: "application/xml",
        write: soap::wsdl,
    },
    FaceDescription {
        name: "xmlrpc",
        about: "Methods of XML-RPC, as their introspection tells them",
        media_type: "text/markdown; charset=utf-8",
        write: xmlrpc::introspection,
    },
    FaceDescription {
        name: "socket",
        about: "The page from which a client of the raw socket is written",
        media_type: "text/markdown; charset=utf-8",
        write: socket::page,
    },
    FaceDescription {
        name: "proto",
        about: "gRPC and Protocol Buffers as a .proto file",
        media_type: "text/plain; charset=utf-8",
        write: grpc::proto,
    },
    FaceDescription {
        name: "numbers",
        about: "Numbers of operations and fields that never change, new ones appended",
        media_type: "application/toml",
        write: || appended(description()),
    },
];
