//! Push as a choice: a server sends when it has something, over a connection that the device keeps.
//!
//! GCM and FCM pass the push service of a vendor. The gateway of this project speaks the same protocols to devices, without that way.

use crate::plan::StudyPlan;
use crate::subject::PUSH_SERVICES;
use std::collections::BTreeMap;
use stentor_wire::mcs::{McsAppData, McsData, McsStanza};

/// The gateway of this project as a choice.
pub(super) const GATEWAY: &str = "gateway";
/// The study that measured push services.
const STUDY: &str = "albertengo-2020";
/// Data that GCM and FCM take in a message.
pub(super) const DATA_MAX_BYTES: u64 = 4096;
/// The factor of the push service's own delay, and its level without any.
const DELAY: (&str, &str) = ("provider_delay", "0 ms");
/// The setting of the push service's delay on its way to the device, in milliseconds.
const DELAY_DOWN: &str = "provider_down_ms";

/// Returns true if a choice is push.
pub(super) fn is_push(choice: &str) -> bool {
    choice == GATEWAY || PUSH_SERVICES.contains(&choice)
}

/// Returns the choice that a cell of a dialect measured. Without a delay of the vendor's service, that is the gateway itself.
pub(super) fn choice<'a>(dialect: &'a str, levels: &BTreeMap<String, String>) -> &'a str {
    let is_direct = levels.get(DELAY.0).is_none_or(|level| level == DELAY.1);
    if is_direct && PUSH_SERVICES.contains(&dialect) { GATEWAY } else { dialect }
}

/// Counts the messages that carry this much content to a device.
pub(super) fn messages(choice: &str, payload_bytes: u64) -> u64 {
    if choice == GATEWAY { 1 } else { payload_bytes.div_ceil(DATA_MAX_BYTES).max(1) }
}

/// Counts the bytes of these messages on the device's connection, by writing them.
pub(super) fn body_bytes(choice: &str, payload_bytes: u64) -> u64 {
    let count = messages(choice, payload_bytes);
    let part = payload_bytes.div_ceil(count);
    let value = "a".repeat(usize::try_from(part).unwrap_or(0));
    let data = McsData {
        id: Some("1".to_owned()),
        from: "123456789012".to_owned(),
        category: "org.example.app".to_owned(),
        app_data: vec![McsAppData { key: "payload".to_owned(), value }],
        persistent_id: Some("0:1234567890123456%0123456789abcdef".to_owned()),
        ..McsData::default()
    };
    let mut written = Vec::new();
    McsStanza::Data(Box::new(data)).write(&mut written);
    written.len() as u64 * count
}

/// Returns the time that a message spends in the vendor's service on its way to the device, in milliseconds, as the study's plan has it;
/// 0 for the gateway and for all that is not push.
pub(super) fn service_ms(choice: &str) -> f64 {
    let plan = StudyPlan::shipped(STUDY).ok().flatten();
    let slots = plan.iter().flat_map(|plan| &plan.experiments).flat_map(|experiment| &experiment.subjects);
    let of_choice = slots.filter(|slot| slot.dialects.iter().any(|dialect| dialect == choice));
    let delays = of_choice.filter_map(|slot| slot.set.get(DELAY_DOWN)?.parse().ok());
    delays.fold(0.0, f64::max)
}
