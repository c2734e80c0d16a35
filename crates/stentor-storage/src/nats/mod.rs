//! The Queue port on NATS JetStream: a work queue that any number of processes share, with an explicit ack for each ticket.
//!
//! A ticket is a message on a subject of its own, `<stream>.q.<provider>.<app>.<class>.<chunk>`, of which the stream holds only one.
//! Therefore publishing again changes nothing, however much later. The message's id (`Nats-Msg-Id`) belongs to one call only, so that a
//! publication can be repeated if its reply was lost; the server forgets ids after a while, and a chunk may come twice. A lane is a
//! consumer with a filter. The due time is the payload: tickets that are not due are not published here.
//!
//! This process records its own leases and their ends; the server's timer (`ack_wait`) releases the leases of a dead process.

mod address;
mod codes;
mod leases;
mod queue;
mod settings;
mod stream;
mod subject;

pub use address::NatsAddress;
pub use queue::NatsQueue;
pub use settings::NatsSettings;
