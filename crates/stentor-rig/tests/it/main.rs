//! The rig on the real kernel. Needs root and /dev/net/tun; reports a skip where they are missing.
#![allow(clippy::unwrap_used, reason = "a story that cannot go on has failed")]
#![allow(clippy::print_stdout, reason = "a test that cannot run says so")]

mod real;
