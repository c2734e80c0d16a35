//! The Queue port on NATS JetStream: a work queue that any number of processes share, with an explicit ack for each ticket.
//!
//! A ticket is a message on a subject of its own, `<stream>.q.<provider>.<app>.<class>.<chunk>`, of which the stream holds one:
//! that is how publishing again changes nothing, however much later. The message's id (`Nats-Msg-Id`) is only of one call, so that
//! a publication whose reply was lost can be repeated; the server forgets ids after a while, and a chunk may come twice. A lane is a
//! consumer with a filter. The due time is the payload: what is not due is not published here.
//!
//! Which tickets this process has leased, and until when, it notes itself; the server's own timer (`ack_wait`) gives back what a
//! dead process had.

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
