//! Faces beside REST over the same contract.

mod socket;
mod xmlrpc;
