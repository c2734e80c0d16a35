//! Faces beside REST over the same contract.

mod discovery;
mod xmlrpc;
