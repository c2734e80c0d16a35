//! Deliveries to a device.

use mqtt_protocol_core::mqtt::result_code::DisconnectReasonCode;
use stentor_core::id::MessageId;
use stentor_core::outcome::Reason;
use tokio::io::{AsyncRead, AsyncWrite};

use super::super::content::{MqttDelivery, deletion_of, delivery_of, topic_of};
use super::super::encoded_deliveries::with_encoded;
use super::super::fault::{MqttEnd, MqttFault};
use super::super::limits::WRITE_BYTES;
use super::super::writer::EncodedDelivery;
use super::MqttSession;
use crate::delivery::PendingMessage;
use crate::device_keys::ContentError;

impl<S: AsyncRead + AsyncWrite + Unpin> MqttSession<S> {
    /// Writes messages; those of QoS 0 are confirmed once they are written.
    pub(super) async fn give(&mut self, messages: Vec<PendingMessage>) -> Result<(), MqttEnd> {
        let mut unacknowledged = Vec::new();
        for one in &messages {
            self.write_delivery(one, &mut unacknowledged)?;
            if self.link.writer.waiting_bytes() >= WRITE_BYTES {
                self.hand_over(&mut unacknowledged).await?;
            }
        }
        self.hand_over(&mut unacknowledged).await
    }

    fn write_delivery(
        &mut self,
        one: &PendingMessage,
        unacknowledged: &mut Vec<MessageId>,
    ) -> Result<(), MqttEnd> {
        let id = one.message.id;
        let given = self.subscriptions.given_as(&topic_of(&one.message));
        let packet_id = given.is_at_least_once.then(|| self.new_packet_id());
        // For an existing subscription, a last state is an ordinary message, unless the subscription wants the flag as published (3.3.1.3).
        let is_retained = given.is_as_published && one.message.spec.retained_topic().is_some();
        if !self.write_message(one, packet_id, is_retained)? {
            // It would never fit the size limit announced by the device (3.1.2.11.4 of MQTT 5).
            self.session.give_up(&[id], Reason::PayloadTooLarge);
            return Ok(());
        }
        match packet_id {
            Some(packet_id) => self.flight.push((packet_id, id)),
            None => unacknowledged.push(id),
        }
        Ok(())
    }

    /// Gathers a message for the device; returns false if it exceeds the device's limit. A sealed message is encoded for this device alone,
    /// any other is shared by many.
    fn write_message(
        &mut self,
        one: &PendingMessage,
        packet_id: Option<u16>,
        is_retained: bool,
    ) -> Result<bool, MqttEnd> {
        let now = self.gateway.clock().now();
        let (writer, is_numbered) = (&mut self.link.writer, packet_id.is_some());
        let version = writer.version();
        let Some(keys) = &self.keys else {
            let write = |encoded: &EncodedDelivery| writer.publish(encoded, packet_id, is_retained);
            let written = with_encoded(&one.message, version, is_numbered, now, write);
            return Ok(written.map_err(ungiven)?.unwrap_or(false));
        };
        let delivery = delivery_of(&one.message, now, Some(keys)).map_err(ungiven)?;
        let encoded = EncodedDelivery::encode(version, &delivery, is_numbered);
        Ok(encoded.is_some_and(|encoded| writer.publish(&encoded, packet_id, is_retained)))
    }

    /// Writes the output, and confirms the messages that need no acknowledgement.
    async fn hand_over(&mut self, unacknowledged: &mut Vec<MessageId>) -> Result<(), MqttEnd> {
        // Written before it is confirmed, because a confirmed message is never delivered again.
        self.link.flush().await?;
        if !unacknowledged.is_empty() {
            self.session.confirm(unacknowledged);
            unacknowledged.clear();
        }
        Ok(())
    }

    /// Writes the notice that messages were deleted.
    pub(super) async fn write_deletion(&mut self, count: usize) -> Result<(), MqttEnd> {
        self.write_unnumbered(&deletion_of(count), false);
        self.link.flush().await
    }

    /// Writes a delivery that is not in the ledger, with QoS 0; one that does not fit is dropped.
    pub(super) fn write_unnumbered(&mut self, delivery: &MqttDelivery, is_retained: bool) {
        let encoded = EncodedDelivery::encode(self.link.writer.version(), delivery, false);
        if let Some(encoded) = encoded {
            let _is_written = self.link.writer.publish(&encoded, None, is_retained);
        }
    }

    /// Returns the message delivered with this packet identifier. Any reason code counts: the message may not be sent again (4.3.2 of MQTT
    /// 5).
    pub(super) fn acknowledged(&mut self, packet_id: u16) -> Option<MessageId> {
        let place = self.flight.iter().position(|(known, _)| *known == packet_id)?;
        let (_, message) = self.flight.swap_remove(place);
        if self.flight.is_empty() {
            // A waiting connection holds no memory for it.
            self.flight = Vec::new();
        }
        Some(message)
    }

    fn new_packet_id(&mut self) -> u16 {
        // The window limits their number, so one is always free.
        loop {
            self.last_packet_id = self.last_packet_id.checked_add(1).unwrap_or(1);
            if !self.flight.iter().any(|(known, _)| *known == self.last_packet_id) {
                return self.last_packet_id;
            }
        }
    }
}

/// Ends the connection, because the message must not be sent in clear; it is delivered later.
fn ungiven(error: ContentError) -> MqttEnd {
    let why = match error {
        ContentError::Unwritten => "a message could not be written",
        ContentError::Unsealed(_) => "a message could not be sealed",
    };
    MqttFault::new(DisconnectReasonCode::ServerBusy, why).into()
}
