//! The part of HTTP/2 that clients and servers share: frames (RFC 9113) and header compression (RFC 7541).
//!
//! It contains the numbers, tables and codes of the two documents, and functions that read and write them. It does no IO and knows no
//! connection. Decoding errors are returned; the caller decides their consequences.
#![forbid(unsafe_code)]

pub mod frame;
pub mod hpack;
