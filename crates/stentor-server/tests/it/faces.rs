//! Faces beside REST over the same contract.

mod discovery;
mod grpc;
mod soap;
mod socket;
mod xmlrpc;
