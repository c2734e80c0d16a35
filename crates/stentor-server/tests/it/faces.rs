//! Faces beside REST over the same contract.

mod discovery;
mod socket;
mod soap;
mod xmlrpc;
