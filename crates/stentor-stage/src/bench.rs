//! What Stentor costs, beside others where there are any, as ratios within one run.

pub mod accept;
mod campaigns;
pub mod cold;
pub mod faces;
pub mod fair;
pub mod gateway;
pub mod http2;
pub mod import;
pub mod pipeline;
mod singles;
mod sink;
mod sink_log;
mod store_ratio;
pub mod trouble;
pub mod urgent;
