//! The user interface that both programs share: tables and JSON, progress, exit codes, signals, the log.
#![forbid(unsafe_code)]

pub mod demo_report;
pub mod failure;
pub mod ledger;
pub mod logging;
pub mod output;
pub mod process;
pub mod progress;
pub mod reference;
pub mod service_name;
pub mod store_name;
pub mod value_names;
