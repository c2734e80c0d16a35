//! Faces beside REST over the same contract.

mod soap;
mod xmlrpc;
