//! The control port.
