//! The other side of every push service: emulators, observer, sink.
//!
//! Written from the vendors' documents, never from a client. A server parses and frames, a policy chooses the responses, and an observer
//! counts; the three are separate parts.
#![deny(unsafe_code)]

mod access_tokens;
pub mod apns;
pub mod ccs;
mod clock;
pub mod config;
pub mod control;
pub mod credential;
pub mod device;
mod dice;
mod error;
pub mod faults;
pub mod fcm;
mod files;
mod frames;
#[doc(hidden)]
pub mod fuzzing;
pub mod gcm;
pub mod hms;
mod json;
mod listener;
pub mod observer;
pub mod policy;
mod prefetch;
mod service;
pub mod sink;
pub mod tls;
pub mod web_push;
pub mod wns;

pub use apns::{ApnsConfig, ApnsEmulator, ApnsOptions, RunningApns};
pub use ccs::{CcsConfig, CcsEmulator, CcsGeneration, CcsOptions, InjectedMessage, RunningCcs};
pub use config::{EmulatorConfig, VendorOptions};
pub use credential::EmulatorCredential;
pub use error::EmulatorError;
pub use fcm::{FcmConfig, FcmEmulator, FcmOptions, RunningFcm};
pub use gcm::{GcmConfig, GcmEmulator, GcmOptions, RunningGcm};
pub use hms::{HmsConfig, HmsEmulator, HmsOptions, RunningHms};
pub use observer::{Counts, Observer, ObserverConfig, ObserverFile, ObserverTotals};
pub use policy::Policy;
pub use sink::{RunningSink, SinkConfig, SinkEmulator, SinkLogConfig};
pub use tls::TlsConfig;
pub use web_push::{RunningWebPush, WebPushConfig, WebPushEmulator, WebPushOptions};
pub use wns::{RunningWns, WnsConfig, WnsEmulator, WnsOptions};
