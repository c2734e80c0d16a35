//! Deliveries as they are written, made once for all devices that get the same.

use std::cell::RefCell;
use std::sync::Arc;

use stentor_core::message::Message;
use stentor_core::time::Timestamp;

use super::content::{delivery_of, expiry_seconds_of};
use super::request::MqttVersion;
use super::writer::EncodedDelivery;
use crate::web_push::SealingError;

/// Messages that are given to many devices at the same time; with more of them each is made more often.
const KEPT_MAX_COUNT: usize = 32;

thread_local! {
    /// Of each thread its own: connections on other threads are not waited for.
    static LATELY: RefCell<EncodedDeliveries> = const { RefCell::new(EncodedDeliveries::new()) };
}

/// What makes the bytes of one delivery differ from those of another, but for the packet identifier.
struct DeliveryKey {
    /// Held here, so that no other message is ever found in its place.
    message: Arc<Message>,
    version: MqttVersion,
    is_numbered: bool,
    /// MQTT 3.1.1 does not tell it.
    expiry_seconds: Option<u32>,
}

/// The deliveries that were made last.
struct EncodedDeliveries {
    kept: Vec<(DeliveryKey, EncodedDelivery)>,
    /// Whose place the next one takes.
    oldest: usize,
}

/// Hands over a message as a device of this version without keys is given it; `None` when it cannot be written.
pub(super) fn with_encoded<T>(
    message: &Arc<Message>,
    version: MqttVersion,
    is_numbered: bool,
    now: Timestamp,
    write: impl FnOnce(&EncodedDelivery) -> T,
) -> Result<Option<T>, SealingError> {
    let expiry_seconds = match version {
        MqttVersion::V3 => None,
        MqttVersion::V5 => expiry_seconds_of(message, now),
    };
    let key = DeliveryKey { message: Arc::clone(message), version, is_numbered, expiry_seconds };
    LATELY.with_borrow_mut(|lately| Ok(lately.find_or_make(key, now)?.map(write)))
}

impl DeliveryKey {
    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.message, &other.message)
            && (self.version, self.is_numbered, self.expiry_seconds)
                == (other.version, other.is_numbered, other.expiry_seconds)
    }
}

impl EncodedDeliveries {
    const fn new() -> Self {
        Self { kept: Vec::new(), oldest: 0 }
    }

    fn find_or_make(
        &mut self,
        key: DeliveryKey,
        now: Timestamp,
    ) -> Result<Option<&EncodedDelivery>, SealingError> {
        let known = self.kept.iter().position(|(known, _)| known.is(&key));
        let place = match known {
            Some(place) => place,
            None => {
                let delivery = delivery_of(&key.message, now, None)?;
                let encoded = EncodedDelivery::encode(key.version, &delivery, key.is_numbered);
                let Some(encoded) = encoded else { return Ok(None) };
                self.keep(key, encoded)
            }
        };
        Ok(self.kept.get(place).map(|(_, encoded)| encoded))
    }

    fn keep(&mut self, key: DeliveryKey, encoded: EncodedDelivery) -> usize {
        if self.kept.len() < KEPT_MAX_COUNT {
            self.kept.push((key, encoded));
            return self.kept.len() - 1;
        }
        let place = self.oldest;
        self.kept[place] = (key, encoded);
        self.oldest = (place + 1) % KEPT_MAX_COUNT;
        place
    }
}
