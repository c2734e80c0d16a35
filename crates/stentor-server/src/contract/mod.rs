//! The contract: the operations of the server, with their requests and replies, in plain types. Faces are encodings of the contract, and
//! the service implements it; nothing here depends on HTTP, XML or SQL.

pub mod accounts;
pub mod apps;
pub mod audit;
pub mod bulk;
mod caller;
pub mod campaigns;
pub mod channels;
pub mod credentials;
mod described;
pub mod description;
pub mod devices;
pub mod groups;
pub mod import;
mod instant;
mod list;
pub mod messages;
pub mod nodes;
mod operation;
mod problem;
pub mod proposals;
mod refused;
mod repeat;
pub mod role;
pub mod schedules;
pub mod services;
pub mod settings;
pub mod shape;
mod state_condition;
pub mod status;
pub mod streams;
pub mod table;
pub mod topics;
pub mod upstream;
pub mod users;
pub mod webhooks;

pub use caller::{Caller, CallerKnowledge, Identity, Origin};

pub use instant::Instant;
pub use list::{After, Before, LIMIT_MAX, REPLY_MAX_BYTES, json_bytes};
pub use operation::{Access, Facts, Operation, Serve};
pub use problem::{ErrorCode, Problem, ServiceResult};
pub use refused::RefusedView;
pub(crate) use repeat::hash;
pub use repeat::{Kept, Repeat, Repeatable};
pub use state_condition::{Conditional, StateCondition, StateTag, StateTags};
