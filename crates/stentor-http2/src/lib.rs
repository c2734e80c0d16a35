//! An HTTP/2 client for very many small requests over few connections.
//!
//! It knows nothing of push. It takes a [`RequestBatch`] of POST requests and returns one [`Reply`] for each, in the same order. A reply is
//! one of three: answered, certainly not processed, or written and never answered. Only requests of the second kind are ever sent again.
#![forbid(unsafe_code)]

mod addresses;
mod batch;
mod buffer_pool;
mod client;
mod congestion;
mod connection;
mod dial;
mod endpoint;
mod fault;
#[doc(hidden)]
pub mod fuzzing;
mod gather;
mod latency;
mod limits;
mod line;
mod opening;
mod pool;
mod response;
mod sending;
mod stats;
mod tls;
mod transport;
mod waits;
mod work;

pub use addresses::{Addresses, AllAddresses};
pub use batch::{
    EXCERPT_BODY_MAX_BYTES, EXCERPT_HEADER_MAX_BYTES, Excerpt, Keep, Part, Replies, Reply, Request,
    RequestBatch, Requests,
};
pub use client::Client;
pub use endpoint::{Endpoint, Roots};
pub use fault::Fault;
pub use limits::Limits;
pub use line::Line;
pub use response::{HaltResponse, Response};
pub use sending::Sending;
pub use stats::Stats;
