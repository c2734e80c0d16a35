//! Failures known from other push servers, tested against real processes: the numbers are those of the invariants in docs/invariants.md.

mod caller;
mod crashes;
mod faults;
mod memory;
mod outbound;
