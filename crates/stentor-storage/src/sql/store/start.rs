//! Starting due campaigns: fixes the bound of the audience, and creates producers or chunks.

use std::collections::BTreeMap;

use stentor_core::campaign::{CampaignState, Stop};
use stentor_core::device::ProviderKind;
use stentor_core::id::{AppId, CampaignId, DeviceId, MessageId};
use stentor_core::ledger::{self, Audience, Cutting, Finish, LedgerCache, LedgerRows};
use stentor_core::message::{Content, Message};
use stentor_core::outcome::Reason;
use stentor_core::ports::store::{AT_ONCE_MAX_DEVICES, AtOnce, Started};
use stentor_core::target::Target;
use stentor_core::time::Timestamp;

use super::app_providers::{self, AppProvider, device_of, fleet_of};
use super::{sequences, targets, turns};
use crate::sql::{Connection, Done, LedgerEngine, SqlError, attempt};

/// Starts due campaigns, with the apps in turn if not all can start. A campaign with an unreadable message is stopped, so that it does not
/// delay the others.
pub(crate) fn due<E: LedgerEngine>(
    connection: &E::Connection,
    count: usize,
    chunk_max_devices: usize,
    now: Timestamp,
) -> Done<Started> {
    let due = turns::due_campaigns(connection, now, count)?;
    let due: Vec<_> = due.into_iter().map(|id| MessageId::from_raw(id.cast_unsigned())).collect();
    let some = |ids: &[MessageId]| E::begin(connection, ids, Cutting { chunk_max_devices, now });
    // All together first: data that campaigns share is read once, and books are written once.
    if let Ok(started) = attempt(connection, || some(&due))? {
        return Ok(Started { has_more: started.has_more || due.len() >= count, ..started });
    }
    let mut all = Started { has_more: due.len() >= count, ..Started::default() };
    // A rollback still counts toward a portion. With the former portion, no campaign might begin, and the damaged one might not be stopped.
    let portion = E::start_portion(connection);
    for (at, id) in due.into_iter().enumerate() {
        if at > 0 && portion.is_over() {
            all.has_more = true;
            break;
        }
        match attempt(connection, || some(&[id]))? {
            Ok(one) => {
                all.tickets.extend(one.tickets);
                all.begun.extend(one.begun);
                all.has_producers |= one.has_producers;
            }
            // This one alone is at fault.
            Err(_) => refuse::<E>(connection, id.into(), now)?,
        }
    }
    Ok(all)
}

/// Stops a campaign with an unreadable message.
fn refuse<E: LedgerEngine>(connection: &E::Connection, id: CampaignId, now: Timestamp) -> Done<()> {
    tracing::error!(campaign = %id, "its message cannot be read: it is stopped");
    let stop = Stop { reason: Reason::Damaged, detail: "the message cannot be read".to_owned() };
    E::rows(connection).write_end(id, &Finish { state: CampaignState::Stopped, stop: Some(stop) }, now)
}

/// Rows with which campaigns are started.
pub(crate) trait StartRows: LedgerRows<Error = SqlError> {
    /// Returns the connection.
    fn connection(&self) -> &Connection;

    /// Returns the fleet of a number.
    fn fleet_by_no(&self, no: u64) -> Done<AppProvider>;
}

/// Starts campaigns in one transaction: shared data is read once, and books are written once.
pub(crate) struct Starter<'r, R: LedgerRows> {
    pub(crate) ledger: LedgerCache<'r, R>,
    pub(crate) cutting: Cutting,
    pub(crate) started: Started,
    /// The last device number, once it was read or assigned.
    pub(crate) last_device: Option<u64>,
}

impl<'r, R: StartRows> Starter<'r, R> {
    pub(crate) fn new(rows: &'r mut R, cutting: Cutting) -> Self {
        Self { ledger: LedgerCache::new(rows), cutting, started: Started::default(), last_device: None }
    }

    /// Starts the campaign of a message. `find` returns the keys of the devices that its target names.
    pub(crate) fn begin(
        &mut self,
        message: &Message,
        find: impl FnOnce(&mut Self, AppId, &Target) -> Done<Vec<i64>>,
    ) -> Done<()> {
        let (app, target) = (message.app, &message.spec.target);
        let is_direct = target.is_direct() && !targets::has_many(self.connection(), app, target)?;
        let audience = match is_direct {
            true => {
                let keys = find(self, app, target)?;
                Audience::Named(self.by_provider(keys, &message.spec.content)?)
            }
            false => Audience::Wide(self.providers(app, &message.spec.content)?),
        };
        self.started.has_producers |= matches!(&audience, Audience::Wide(providers) if !providers.is_empty());
        // Read after the devices, of which one may have been created for a token.
        let as_of = DeviceId::from_raw(self.last_device()?);
        let tickets = ledger::begin(&mut self.ledger, message, (audience, as_of), self.cutting)?;
        self.started.tickets.extend(tickets);
        self.started.begun.push(app);
        Ok(())
    }

    /// Executes the pending writes. If the portion ended early, the campaigns begun so far are written and kept.
    pub(crate) fn close(self) -> Done<Started> {
        self.ledger.close(self.cutting.now)?;
        Ok(self.started)
    }

    pub(crate) fn connection(&self) -> &Connection {
        self.ledger.rows.connection()
    }

    pub(crate) fn last_device(&mut self) -> Done<u64> {
        if let Some(last) = self.last_device {
            return Ok(last);
        }
        let last = sequences::last_device(self.connection())?.raw();
        self.last_device = Some(last);
        Ok(last)
    }

    /// Lists the providers that the app's devices use or used, and for which the content is meant.
    fn providers(&self, app: AppId, content: &Content) -> Done<Vec<ProviderKind>> {
        let registries = app_providers::of_app(self.connection(), app)?;
        let providers = registries.into_iter().map(|one| one.provider);
        Ok(providers.filter(|provider| content.is_for(*provider)).collect())
    }

    /// Puts devices by provider.
    fn by_provider(&self, keys: Vec<i64>, content: &Content) -> Done<Vec<(ProviderKind, Vec<DeviceId>)>> {
        let fleets = by_fleet(self.ledger.rows, keys, content)?.into_iter();
        Ok(fleets.map(|(fleet, devices)| (fleet.provider, devices)).collect())
    }
}

/// Devices of one fleet, ascending.
pub(crate) type FleetDevices = (AppProvider, Vec<DeviceId>);

/// Puts devices by fleet, ascending, without those for which the content is not meant. A device that is named twice gets the message once.
fn by_fleet(rows: &impl StartRows, mut keys: Vec<i64>, content: &Content) -> Done<Vec<FleetDevices>> {
    keys.sort_unstable();
    keys.dedup();
    let mut fleets: BTreeMap<u64, Vec<DeviceId>> = BTreeMap::new();
    for key in keys {
        fleets.entry(fleet_of(key)).or_default().push(device_of(key));
    }
    let mut found = Vec::with_capacity(fleets.len());
    for (no, devices) in fleets {
        let fleet = rows.fleet_by_no(no)?;
        if content.is_for(fleet.provider) {
            found.push((fleet, devices));
        }
    }
    Ok(found)
}

/// Puts the devices of a message that is sent at once by fleet. Returns `None` if it cannot be: it names none, too many, or one of a provider
/// through which nothing can be sent.
pub(crate) fn at_once_by_fleet(
    rows: &impl StartRows,
    keys: Vec<i64>,
    content: &Content,
    at_once: &AtOnce,
) -> Done<Option<Vec<FleetDevices>>> {
    if keys.is_empty() || keys.len() > AT_ONCE_MAX_DEVICES {
        return Ok(None);
    }
    let fleets = by_fleet(rows, keys, content)?;
    let can_send =
        !fleets.is_empty() && fleets.iter().all(|(fleet, _)| at_once.providers.contains(&fleet.provider));
    Ok(can_send.then_some(fleets))
}
