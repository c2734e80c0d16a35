//! Known waiting deliveries of recently disconnected devices. A device that reconnects at once, for example by polling, continues with
//! them.

use std::collections::{HashMap, VecDeque};

use parking_lot::{Mutex, MutexGuard};
use stentor_core::id::{DeviceId, MessageId};
use stentor_core::ports::store::{Receipt, ReceiptKind};
use stentor_core::time::Timestamp;

use crate::backlog::{DeliveryBacklog, GivenDelivery, ParkedSession};
use crate::identity::DeviceIdentity;
use crate::limits::PARKED_DEVICES_MAX_COUNT;
use crate::sender_receipts::{EndedDeliveries, SenderReceipt};
use crate::session_state::SessionState;

#[derive(Default)]
struct ParkedDevices {
    devices: HashMap<DeviceId, ParkedSession>,
    /// Time at which each was parked, the earliest first; a device may occur more than once.
    order: VecDeque<(Timestamp, DeviceId)>,
}

/// The recently disconnected devices.
#[derive(Default)]
pub(crate) struct ParkedDeliveries(Mutex<ParkedDevices>);

impl ParkedDeliveries {
    /// Keeps the waiting deliveries of a device in place of earlier ones. `None` only removes those.
    pub(crate) fn put(&self, device: DeviceId, parked: Option<ParkedSession>, now: Timestamp) {
        let mut inner = self.lock();
        inner.devices.remove(&device);
        inner.forget_old(now);
        if let Some(parked) = parked.filter(|_| inner.order.len() < PARKED_DEVICES_MAX_COUNT) {
            inner.devices.insert(device, parked);
            inner.order.push_back((now, device));
        }
    }

    /// Passes the waiting deliveries of a device to its new session, including the unconfirmed ones of the old session.
    pub(crate) fn hand_over(&self, session: &SessionState) {
        // Held until the session has them: a caller of `forget` offers newer deliveries to the session only afterwards.
        let mut inner = self.lock();
        if let Some(ParkedSession { given, mut backlog }) = inner.devices.remove(&session.identity().device) {
            backlog.put_back(given.into_iter().map(|one| one.waiting));
            // Deliveries in between were not announced to it.
            backlog.note_more();
            session.go_on_from(backlog);
        }
    }

    /// Drops the waiting deliveries of devices, because they are no longer complete.
    pub(crate) fn forget(&self, devices: &[DeviceId]) {
        let mut inner = self.lock();
        if !inner.devices.is_empty() {
            devices.iter().for_each(|device| _ = inner.devices.remove(device));
        }
    }

    /// Removes the deliveries that a device confirms, and returns them.
    pub(crate) fn confirm(&self, identity: DeviceIdentity, messages: &[MessageId]) -> EndedDeliveries {
        let mut ended = EndedDeliveries::default();
        let mut inner = self.lock();
        let Some(parked) = inner.devices.get_mut(&identity.device) else { return ended };
        let is_meant = |one: &mut GivenDelivery| messages.contains(&one.waiting.message);
        for GivenDelivery { waiting, wanted } in parked.given.extract_if(.., is_meant) {
            let (chunk, device) = (waiting.chunk, identity.device);
            ended.receipts.push(Receipt { chunk, device, kind: ReceiptKind::Delivered });
            ended.wanted.extend(wanted.map(|name| SenderReceipt::new(identity, waiting.message, name)));
        }
        parked.backlog.skip(|message| messages.contains(&message));
        ended
    }

    fn lock(&self) -> MutexGuard<'_, ParkedDevices> {
        self.0.lock()
    }
}

impl ParkedDevices {
    fn forget_old(&mut self, now: Timestamp) {
        while let Some((_, device)) =
            self.order.front().filter(|(at, _)| !DeliveryBacklog::is_fresh_since(*at, now))
        {
            let is_old = |parked: &ParkedSession| !parked.backlog.is_fresh(now);
            if self.devices.get(device).is_some_and(is_old) {
                self.devices.remove(device);
            }
            self.order.pop_front();
        }
    }
}
