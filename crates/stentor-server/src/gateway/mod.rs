//! What the gateway's devices ask over HTTP. What is done stands in the gateway's crate; here are the routes.

pub mod mcs;
