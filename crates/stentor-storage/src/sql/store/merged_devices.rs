//! Two devices that turn out to be one, because a registration names the token of one as the former token of the other.
//!
//! Design decisions:
//! - The device that was registered first stays, with its id and its deliveries. Producers walk an audience in the order of ids: what is
//!   still ahead of them is then the later device, which is gone. So no audience reaches one device twice because its devices became one.
//! - Facts in the registration win, then those of the device that has the new token, because a newer version of the app stated them, then
//!   those of the other one. Tags are one fact.
//! - Subscriptions and memberships of both are kept. Beyond the limits of one device nothing is changed, and the registration is refused.

use stentor_core::device::Registration;
use stentor_core::time::Timestamp;

use super::app_providers::AppProvider;
use super::registration::KnownDevice;
use super::tags::change_tags;
use super::{members, owners, removal, topics};
use crate::sql::{Connection, Done};

/// The devices that a registration makes one.
pub(crate) struct DevicePair {
    /// The one that has the new token.
    pub(crate) holder: KnownDevice,
    /// The one that has the former token.
    pub(crate) former: KnownDevice,
}

impl DevicePair {
    /// Returns the device that stays.
    pub(crate) fn stays(&self) -> &KnownDevice {
        if self.former.key < self.holder.key { &self.former } else { &self.holder }
    }

    /// Makes one device of both; `user` is the one that the registration names. The caller counts the device that stays, if it joins.
    pub(crate) fn merge(
        &self,
        connection: &Connection,
        fleet: AppProvider,
        one: &Registration,
        user: Option<i64>,
        now: Timestamp,
    ) -> Done<()> {
        let stays = self.stays();
        let goes = if stays.key == self.former.key { &self.holder } else { &self.former };
        topics::move_all(connection, goes.key, stays.key)?;
        members::move_all(connection, goes.key, stays.key)?;
        removal::device(connection, fleet, goes.key)?;
        // After the removal, which forgets that the other device has the new token.
        if let Some(former) = one.replaces().filter(|_| stays.key == self.former.key) {
            connection.set_token(fleet, stays.key, former, &one.token)?;
        }
        let facts = self.holder.with_facts_of(&self.former);
        let renewed = facts.renewed(one);
        let user = user.or(facts.user);
        owners::move_device(connection, stays.key, stays.user, user)?;
        change_tags(connection, fleet.app, stays.key, stays.tags.as_deref(), renewed.tags.as_deref())?;
        renewed.write(connection, stays.key, one.platform, user, now)
    }
}
