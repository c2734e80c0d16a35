//! A cache of encoded deliveries, shared by devices that get the same bytes.

use std::cell::RefCell;
use std::sync::Arc;

use stentor_core::message::Message;
use stentor_core::time::Timestamp;

use super::content::{delivery_of, expiry_seconds_of};
use super::request::MqttVersion;
use super::writer::EncodedDelivery;
use crate::device_keys::ContentError;

/// Size of the cache: messages delivered to many devices at the same time. With more messages each is encoded more often.
const KEPT_MAX_COUNT: usize = 32;

thread_local! {
    /// One per thread, so that connections on other threads need no lock.
    static LATELY: RefCell<EncodedDeliveries> = const { RefCell::new(EncodedDeliveries::new()) };
}

/// The properties that determine the bytes of a delivery, except the packet identifier.
struct DeliveryKey {
    /// Held here, so that no other message can reuse its address.
    message: Arc<Message>,
    version: MqttVersion,
    is_numbered: bool,
    /// `None` for MQTT 3.1.1, which does not transmit it.
    expiry_seconds: Option<u32>,
}

/// The most recently encoded deliveries.
struct EncodedDeliveries {
    kept: Vec<(DeliveryKey, EncodedDelivery)>,
    /// Index of the next entry to replace.
    oldest: usize,
}

/// Calls `write` with a message as encoded for devices of this version without keys; `None` if it cannot be encoded.
pub(super) fn with_encoded<T>(
    message: &Arc<Message>,
    version: MqttVersion,
    is_numbered: bool,
    now: Timestamp,
    write: impl FnOnce(&EncodedDelivery) -> T,
) -> Result<Option<T>, ContentError> {
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
    ) -> Result<Option<&EncodedDelivery>, ContentError> {
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
