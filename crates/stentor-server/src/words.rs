//! The words allowed in requests, for programs that write requests.

use stentor_core::app::Scope;
use stentor_core::channel::ChannelStorage;
use stentor_core::delivery::ShownState;
use stentor_core::device::{DeviceState, Platform, ProviderKind};
use stentor_core::message::Priority;
use stentor_core::schedule::CatchUp;
use stentor_core::word::Word;

/// Platforms of devices, including the usual names of their variants.
pub const PLATFORMS: &[&str] = Platform::WORDS;
/// The table of the optional texts of a device.
pub use stentor_core::device_texts;

/// Adapters that reach devices.
pub const PROVIDERS: &[&str] = ProviderKind::WORDS;
/// Urgencies of messages.
pub const PRIORITIES: &[&str] = Priority::WORDS;
/// States of devices.
pub const DEVICE_STATES: &[&str] = DeviceState::WORDS;
/// States of deliveries.
pub const DELIVERY_STATES: &[&str] = ShownState::WORDS;
/// Messages that broadcast channels keep.
pub const CHANNEL_STORAGES: &[&str] = ChannelStorage::WORDS;
/// Scopes of keys.
pub const SCOPES: &[&str] = Scope::WORDS;
/// Policies for missed occurrences of a schedule.
pub const CATCH_UPS: &[&str] = CatchUp::WORDS;
