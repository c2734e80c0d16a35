//! Faces beside REST over the same contract.

mod discovery;
mod every;
mod grpc;
mod soap;
mod socket;
mod xmlrpc;
