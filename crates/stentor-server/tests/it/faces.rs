//! Faces beside REST over the same contract.

mod xmlrpc;
