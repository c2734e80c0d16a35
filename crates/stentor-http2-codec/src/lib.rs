//! The ground of HTTP/2 that a client and a server share: frames (RFC 9113) and header compression (RFC 7541).
//!
//! Numbers, tables and codes of the two documents, and the functions that read and write them. No IO, no connection,
//! no opinion about a peer: what a mistake means is decided by whoever reads.
#![forbid(unsafe_code)]

pub mod frame;
pub mod hpack;
