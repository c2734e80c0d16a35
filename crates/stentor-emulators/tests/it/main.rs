//! The emulators over real sockets: h2 at frame level, reqwest for whole requests.

mod apns;
mod control;
mod fcm;
mod rig;
