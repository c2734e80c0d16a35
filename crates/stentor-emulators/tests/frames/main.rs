//! The same tests again, with the emulators on their frame-level engine.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use stentor_emulators::Engine;

/// What the emulators of these tests speak HTTP/2 with.
const ENGINE: Engine = Engine::Frames;

#[path = "../it/apns.rs"]
mod apns;
#[path = "../it/arrival.rs"]
mod arrival;
#[path = "../it/control.rs"]
mod control;
#[path = "../it/faults.rs"]
mod faults;
#[path = "../it/fcm.rs"]
mod fcm;
#[path = "../it/frames.rs"]
mod frames;
#[path = "../it/kill.rs"]
mod kill;
#[path = "../it/observer.rs"]
mod observer;
#[path = "../it/provider_token.rs"]
mod provider_token;
#[path = "../it/rig.rs"]
mod rig;
#[path = "../it/topics.rs"]
mod topics;
