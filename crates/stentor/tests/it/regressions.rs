//! What broke other push servers, against real processes: the numbers are those of the invariants in docs/invariants.md.

mod caller;
mod crashes;
mod faults;
mod memory;
mod outbound;
