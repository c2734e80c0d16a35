//! Faces beside REST over the same contract.

mod discovery;
mod soap;
mod socket;
mod grpc;
mod xmlrpc;
