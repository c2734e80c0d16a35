//! What must be done from time to time, and at start.

use std::collections::BTreeSet;

use stentor_core::delivery::DeliveryState;
use stentor_core::device::Device;
use stentor_core::id::{CampaignId, ChunkId, DeviceId};
use stentor_core::outcome::Reason;
use stentor_core::ports::store::{Recovery, StoreError, Swept};
use stentor_core::time::Timestamp;

use super::state::{ChunkRow, State};
use crate::ZERO_TTL_GRACE;

impl State {
    pub(super) fn recover(&mut self, instance: u64, now: Timestamp) -> Result<Recovery, StoreError> {
        self.last_instance = self.last_instance.max(instance);
        let mut found = Recovery::default();
        for id in self.leased(|lease| lease.instance != instance) {
            found.chunks += 1;
            found.deliveries += self.chunks.get(&id).map_or(0, |chunk| chunk.devices.len() as u64);
            self.requeue(id, now, true)?;
        }
        Ok(found)
    }

    pub(super) fn sweep(&mut self, limit: usize, now: Timestamp) -> Result<Swept, StoreError> {
        let expired: Vec<ChunkId> = self.too_late(now).take(limit).collect();
        let verdict = (DeliveryState::Expired, Reason::TtlPassed);
        expired.iter().try_for_each(|id| self.close(*id, verdict, now))?;
        let mut released = Vec::new();
        for id in self.leased(|lease| lease.until <= now).into_iter().take(limit) {
            released.extend(self.requeue(id, now, true)?);
        }
        self.campaigns.values_mut().for_each(|row| row.finish_if_over(now));
        Ok(Swept { expired, released })
    }

    pub(super) fn prune(&mut self, ended_before: Timestamp, replies_before: Timestamp, limit: usize) -> u64 {
        let ended = self.campaigns.values().map(|row| &row.campaign);
        let old = ended.filter(|campaign| campaign.ended_at.is_some_and(|at| at < ended_before));
        let old: BTreeSet<CampaignId> = old.map(|campaign| campaign.id).take(limit).collect();
        let mut gone = old.iter().map(|id| self.forget(*id)).sum();
        for app in self.apps.values_mut() {
            let before = app.replies.len();
            app.replies.retain(|_, reply| reply.created_at >= replies_before);
            gone += (before - app.replies.len()) as u64;
        }
        gone
    }

    pub(super) fn prune_unlisted(&mut self, before: Timestamp) -> Result<u64, StoreError> {
        let chunks = self.chunks.values();
        let counted: BTreeSet<DeviceId> = chunks.flat_map(|chunk| chunk.devices.iter().copied()).collect();
        let mut gone = 0;
        for app in self.apps.values_mut() {
            let is_old = |device: &&Device| !device.listed && device.registered_at < before;
            let old = app.devices.values().filter(is_old).map(|device| device.id);
            let old: Vec<DeviceId> = old.filter(|id| !counted.contains(id)).collect();
            gone += old.len() as u64;
            old.into_iter().try_for_each(|id| app.remove_device(id))?;
        }
        Ok(gone)
    }

    fn too_late(&self, now: Timestamp) -> impl Iterator<Item = ChunkId> {
        let is_late = move |chunk: &ChunkRow| {
            let row = self.campaigns.get(&chunk.campaign);
            chunk.is_queued() && row.is_some_and(|row| row.message.is_over(now, ZERO_TTL_GRACE))
        };
        self.open.iter().filter(move |id| self.chunks.get(id).is_some_and(is_late)).copied()
    }

    fn forget(&mut self, id: CampaignId) -> u64 {
        let Some(row) = self.campaigns.remove(&id) else { return 0 };
        for chunk in &row.chunks {
            self.chunks.remove(chunk);
            self.set_aside.remove(chunk);
        }
        if let (Some(key), Some(app)) = (&row.message.spec.collapse_key, self.apps.get_mut(&row.campaign.app))
            && let Some(newest) = app.newest.get_mut(key)
        {
            newest.retain(|_, messages| {
                messages.remove(&(row.message.place(), row.message.id));
                !messages.is_empty()
            });
        }
        1 + row.chunks.len() as u64
    }
}
