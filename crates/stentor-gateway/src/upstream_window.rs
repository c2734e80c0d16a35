//! The window of messages held by a consumer: a limited number, and a part of it per device.

use std::collections::{BTreeMap, HashMap};

use stentor_core::id::{DeviceId, UpstreamId};

/// A message handed to a consumer.
#[derive(Debug, Clone, Copy)]
struct HandedMessage {
    device: DeviceId,
    /// True if it waits for a later attempt, and takes no place.
    is_resting: bool,
}

/// The unsettled messages of a consumer.
#[derive(Debug)]
pub(crate) struct UpstreamWindow {
    held: BTreeMap<UpstreamId, HandedMessage>,
    /// Places taken, by device.
    places: HashMap<DeviceId, usize>,
    taken: usize,
    most: usize,
    most_of_device: usize,
}

impl UpstreamWindow {
    pub(crate) fn new(most: usize, most_of_device: usize) -> Self {
        let (most, most_of_device) = (most.max(1), most_of_device.max(1));
        Self { held: BTreeMap::new(), places: HashMap::new(), taken: 0, most, most_of_device }
    }

    /// Returns the number of its messages, including the resting ones.
    pub(crate) fn len(&self) -> usize {
        self.held.len()
    }

    pub(crate) fn has(&self, id: UpstreamId) -> bool {
        self.held.contains_key(&id)
    }

    /// Lists its messages, in order.
    pub(crate) fn ids(&self) -> impl Iterator<Item = UpstreamId> {
        self.held.keys().copied()
    }

    pub(crate) const fn is_full(&self) -> bool {
        self.taken >= self.most
    }

    /// Returns true if there is a place for one more message of a device. The limit per device leaves places for others.
    pub(crate) fn has_room(&self, device: DeviceId) -> bool {
        !self.is_full() && self.places.get(&device).is_none_or(|taken| *taken < self.most_of_device)
    }

    /// Returns true if messages of these devices would fill it.
    pub(crate) fn is_filled_by(&self, devices: impl Iterator<Item = DeviceId>) -> bool {
        let mut places: HashMap<DeviceId, usize> = HashMap::new();
        let mut taken = self.taken;
        for device in devices {
            let of_device =
                places.entry(device).or_insert_with(|| self.places.get(&device).copied().unwrap_or(0));
            if *of_device < self.most_of_device {
                *of_device += 1;
                taken += 1;
            }
        }
        taken >= self.most
    }

    pub(crate) fn insert(&mut self, id: UpstreamId, device: DeviceId) {
        if self.held.insert(id, HandedMessage { device, is_resting: false }).is_none() {
            *self.places.entry(device).or_default() += 1;
            self.taken += 1;
        }
    }

    /// Removes a message; returns true if it existed.
    pub(crate) fn remove(&mut self, id: UpstreamId) -> bool {
        self.rest(id);
        self.held.remove(&id).is_some()
    }

    /// Frees the place of a message, which stays held.
    pub(crate) fn rest(&mut self, id: UpstreamId) {
        let Some(message) = self.held.get_mut(&id).filter(|message| !message.is_resting) else { return };
        message.is_resting = true;
        self.taken -= 1;
        if let Some(taken) = self.places.get_mut(&message.device) {
            *taken -= 1;
            if *taken == 0 {
                self.places.remove(&message.device);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(most: usize, of_one_device: u64) -> (UpstreamWindow, DeviceId) {
        let (mut window, device) = (UpstreamWindow::new(most, most.div_ceil(8)), DeviceId::from_raw(1));
        (0..of_one_device).for_each(|number| window.insert(UpstreamId::from_raw(number), device));
        (window, device)
    }

    #[test]
    fn a_device_leaves_places_for_others() {
        let (window, device) = window(100, 13);
        assert!(!window.has_room(device));
        assert!(window.has_room(DeviceId::from_raw(2)));
    }

    #[test]
    fn what_rests_takes_no_place_and_is_held_until_it_is_taken_out() {
        let (mut window, device) = window(100, 13);
        (0..13).for_each(|number| window.rest(UpstreamId::from_raw(number)));
        assert!(window.has_room(device) && window.has(UpstreamId::from_raw(3)));
        assert!(window.remove(UpstreamId::from_raw(3)));
        assert!(!window.remove(UpstreamId::from_raw(3)));
        assert_eq!((window.len(), window.is_full()), (12, false));
    }

    #[test]
    fn a_window_is_full_with_as_many_as_it_takes() {
        let (mut window, device) = (UpstreamWindow::new(3, 3), DeviceId::from_raw(1));
        (0..3).for_each(|number| window.insert(UpstreamId::from_raw(number), device));
        assert!(window.is_full() && !window.has_room(DeviceId::from_raw(2)));
        assert!(window.remove(UpstreamId::from_raw(0)) && window.has_room(device));
    }
}
