//! Faces beside REST over the same contract.

mod grpc;
mod xmlrpc;
