//! The rig on the real kernel; needs root and /dev/net/tun, and says so where they are missing.

mod real;
