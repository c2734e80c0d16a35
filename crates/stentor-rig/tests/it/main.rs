//! The rig on the real kernel; needs root and /dev/net/tun, and says so where they are missing.
#![allow(clippy::unwrap_used, reason = "a story that cannot go on has failed")]
#![allow(clippy::print_stdout, reason = "a test that cannot run says so")]

mod real;
