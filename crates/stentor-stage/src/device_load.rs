//! Many devices that speak MQTT 3.1.1, held by one process and one thread: they connect, confirm what comes, count it, and come
//! back when their connection breaks. They cost little beside the server that they measure.

pub mod arrivals;
mod connection;
pub mod orders;
mod poll_loop;
pub mod process;
mod transport;

pub use poll_loop::run;
