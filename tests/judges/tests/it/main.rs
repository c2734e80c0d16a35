//! Unmodified clients of the push services judge our emulators: what they accept as FCM and APNs is close enough.

mod apns;
mod client;
mod fcm;
mod policy;
mod room;
