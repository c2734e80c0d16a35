//! Benchmarks of Stentor, as ratios within one run, beside other servers where possible.

pub(crate) mod accept;
mod campaigns;
pub(crate) mod cold;
pub(crate) mod console;
pub(crate) mod faces;
pub(crate) mod fair;
pub(crate) mod gateway;
pub(crate) mod http2;
pub(crate) mod import;
mod killed_singles;
pub(crate) mod limits;
pub(crate) mod live_activities;
pub(crate) mod pipeline;
mod single_rivals;
mod singles;
mod sink;
mod sink_log;
mod steady;
mod store_ratio;
mod sustained;
pub(crate) mod trouble;
pub(crate) mod urgent;
pub(crate) mod web_push;
