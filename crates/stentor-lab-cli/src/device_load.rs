//! Many devices that speak MQTT 3.1.1, held by one process and one thread. They connect, confirm and count messages, and reconnect when
//! their connection breaks. They cost little beside the server that they measure.

pub(crate) mod arrivals;
mod connection;
pub(crate) mod orders;
mod poll_loop;
pub(crate) mod process;
mod transport;

pub(crate) use poll_loop::run;
