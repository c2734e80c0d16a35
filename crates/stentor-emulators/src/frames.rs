//! HTTP/2 frame by frame, for load: the server's side alone, without a task, an allocation or a lock per request.
//!
//! A connection is a state machine without IO that a host answers through; [`serve()`] moves its bytes.

mod answer;
mod connection;
mod delayed_answers;
mod field;
mod frame;
mod head;
mod host;
mod limit;
#[cfg(test)]
mod rig;
mod serve;
mod streams;

pub(crate) use answer::{EncodedAnswer, When};
pub(crate) use connection::{Connection, ConnectionLimits};
pub(crate) use field::{Field, HeaderKind};
pub(crate) use host::{Admission, GoAwayEnd, Host, Order, RequestBody};
pub(crate) use serve::{READ_BYTES, serve};
