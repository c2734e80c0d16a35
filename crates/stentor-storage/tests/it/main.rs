//! Engines, judged by the suites of the ports.

mod memory;
mod sqlite;
