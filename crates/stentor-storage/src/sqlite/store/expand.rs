//! Producers: the audience is read beside the writing, and kept if nothing moved meanwhile.

use rusqlite::{Connection, Row, params};
use stentor_core::campaign::{CampaignState, Stop};
use stentor_core::chunk::Class;
use stentor_core::device::ProviderKind;
use stentor_core::id::{AppId, CampaignId, DeviceId, MessageId};
use stentor_core::outcome::Reason;
use stentor_core::ports::store::{Expanded, Expansion, ProducerTask, StoreError};
use stentor_core::time::Timestamp;

use stentor_core::target::Target;

use super::SqliteStore;
use super::ahead::Seen;
use super::audience::{self, Found, Stretch};
use super::books::{self, Shelf};
use super::campaigns;
use super::fleets::Fleet;
use super::start::{self, slices};
use crate::sqlite::damage::{self, attempt, readable};
use crate::sqlite::fault::Done;
use crate::sqlite::query::{one, run};
use crate::sqlite::row::{code, int, number};

/// Where a producer stands.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Position {
    fleet: Fleet,
    cursor: DeviceId,
    as_of: DeviceId,
    state: CampaignState,
    class: Class,
}

/// What looking at the store came to.
enum Look {
    Ended,
    Paused,
    /// It moved, or its campaign changed, while it was looked at.
    Changed,
    Found(Position, Found),
}

/// One step of looking: who was found by then, and after which device to look on.
enum Step {
    Over(Look),
    More(Position, Found, Option<DeviceId>),
}

impl SqliteStore {
    /// Expands one step. When the producer moved or its campaign changed between reading and writing, it looks again.
    pub(super) async fn expand_step(
        &self,
        task: ProducerTask,
        how: Expansion,
    ) -> Result<Expanded, StoreError> {
        let message = self.cached_message(task.message).await?;
        let max = how.chunk_max_devices.max(1).saturating_mul(how.max_chunks.max(1));
        loop {
            let Some(message) = &message else { return Ok(ended()) };
            let mark = self.inner.ahead.mark();
            let (at, found) = match self.look(task, &message.spec.target, how, max).await? {
                Look::Ended => return Ok(ended()),
                Look::Paused => return Ok(Expanded { tickets: Vec::new(), done: false, paused: true }),
                Look::Changed => continue,
                Look::Found(at, found) => (at, found),
            };
            let Found { devices, tokens, .. } = found;
            let kept = self.write(move |connection| {
                let expanded = keep(connection, task, at, &devices, how, max)?;
                Ok(expanded.map(|expanded| (expanded, devices)))
            });
            if let Some((expanded, devices)) = kept.await? {
                let seen = slices(&devices, how.chunk_max_devices).zip(tokens);
                for (ticket, (devices, tokens)) in expanded.tickets.iter().zip(seen) {
                    let seen = Seen { devices: devices.to_vec(), tokens };
                    self.inner.ahead.keep(mark, ticket.chunk, at.fleet, seen);
                }
                return Ok(expanded);
            }
        }
    }
}

impl SqliteStore {
    /// Looks for the next devices of a producer, in as many reads as it takes: an audience may be few among many.
    async fn look(
        &self,
        task: ProducerTask,
        target: &Target,
        how: Expansion,
        max: usize,
    ) -> Result<Look, StoreError> {
        let mut state = None;
        loop {
            let target = target.clone();
            let before = state.take();
            let step = self.read_walk(move |connection| {
                let at = position(connection, task)?;
                look_on(connection, &target, (at, before), how, max)
            });
            match step.await? {
                Step::Over(look) => return Ok(look),
                Step::More(at, found, None) => return Ok(Look::Found(at, found)),
                Step::More(at, found, _) if found.devices.len() >= max => return Ok(Look::Found(at, found)),
                Step::More(at, found, Some(next)) => state = Some((at, found, next)),
            }
        }
    }
}

/// Looks on from where it was before, if nothing has changed since.
fn look_on(
    connection: &Connection,
    target: &Target,
    (now, before): (Option<Position>, Option<(Position, Found, DeviceId)>),
    how: Expansion,
    max: usize,
) -> Done<Step> {
    let Some(at) = now else { return Ok(Step::Over(Look::Ended)) };
    if at.state != CampaignState::Running {
        return Ok(Step::Over(Look::Paused));
    }
    if before.as_ref().is_some_and(|(before, ..)| *before != at) {
        return Ok(Step::Over(Look::Changed));
    }
    let begin = || (Found::along(how.chunk_max_devices), at.cursor);
    let (mut found, after) = before.map_or_else(begin, |(_, found, after)| (found, after));
    let stretch = Stretch { fleet: at.fleet, after, as_of: at.as_of, max: max - found.devices.len() };
    let next = audience::wide(connection, target, stretch, &mut found)?;
    Ok(Step::More(at, found, next))
}

/// Lists producers that have not ended and whose campaign runs.
pub(super) fn tasks(connection: &Connection) -> Done<Vec<ProducerTask>> {
    let sql = "SELECT p.campaign, f.app, f.provider FROM producers p JOIN campaigns k ON k.id = p.campaign
        JOIN fleets f ON f.no = p.fleet WHERE k.state = 1 ORDER BY p.campaign, f.provider";
    let task = |row: &Row<'_>| {
        let (message, app) = (MessageId::from_raw(number(row, 0)?), AppId::from_raw(number(row, 1)?));
        Ok(ProducerTask { message, app, provider: code(row, 2, ProviderKind::from_code)? })
    };
    Ok(readable(connection, "producers", (sql, []), usize::MAX, task)?.0)
}

/// Ends a producer that cannot go on: its campaign is stopped at its provider, and whatever else can be ended ends.
pub(super) fn give_up(connection: &Connection, task: ProducerTask, now: Timestamp) -> Done<()> {
    let campaign = CampaignId::from(task.message);
    let sql = "SELECT no FROM fleets WHERE app = ?1 AND provider = ?2";
    let key = params![int(task.app.raw()), task.provider.code()];
    let Some(no) = one(connection, sql, key, |row| number(row, 0))? else { return Ok(()) };
    let fleet = Fleet { no, app: task.app, provider: task.provider };
    let stopped = attempt(connection, || {
        let stop = Stop { reason: Reason::Damaged, detail: "its audience cannot be found out".to_owned() };
        let mut shelf = Shelf::new(connection);
        campaigns::stop(connection, &mut shelf, (campaign, fleet), stop, now)?;
        shelf.close(now)
    })?;
    let Err(fault) = stopped else { return Ok(()) };
    damage::note("campaigns", int(campaign.raw()), &fault);
    let sql = "DELETE FROM producers WHERE campaign = ?1 AND fleet = ?2";
    run(connection, sql, [int(campaign.raw()), int(no)])?;
    books::write_off(connection, int(campaign.raw()), Some(int(no)), now)
}

fn keep(
    connection: &Connection,
    task: ProducerTask,
    at: Position,
    devices: &[DeviceId],
    how: Expansion,
    max: usize,
) -> Done<Option<Expanded>> {
    if position(connection, task)? != Some(at) {
        return Ok(None);
    }
    let campaign = CampaignId::from(task.message);
    let mut shelf = Shelf::new(connection);
    let (lane, size) = ((at.fleet, at.class), how.chunk_max_devices);
    let tickets = start::cut(connection, &mut shelf, campaign, lane, devices, size, how.now)?;
    let done = devices.len() < max;
    advance(connection, campaign, at.fleet, devices.last().copied().filter(|_| !done))?;
    shelf.open(campaign, task.provider)?.set_complete(done);
    shelf.close(how.now)?;
    Ok(Some(Expanded { tickets, done, paused: false }))
}

fn advance(
    connection: &Connection,
    campaign: CampaignId,
    fleet: Fleet,
    cursor: Option<DeviceId>,
) -> Done<()> {
    let (campaign, fleet) = (int(campaign.raw()), int(fleet.no));
    let Some(cursor) = cursor else {
        let sql = "DELETE FROM producers WHERE campaign = ?1 AND fleet = ?2";
        return run(connection, sql, [campaign, fleet]).map(drop);
    };
    let sql = "UPDATE producers SET cursor = ?3 WHERE campaign = ?1 AND fleet = ?2";
    run(connection, sql, [campaign, fleet, int(cursor.raw())]).map(drop)
}

fn position(connection: &Connection, task: ProducerTask) -> Done<Option<Position>> {
    let sql = "SELECT p.fleet, p.cursor, coalesce(k.as_of, 0), k.state, k.class
        FROM producers p JOIN fleets f ON f.no = p.fleet JOIN campaigns k ON k.id = p.campaign
        WHERE p.campaign = ?1 AND f.app = ?2 AND f.provider = ?3";
    let read = |row: &Row<'_>| {
        Ok(Position {
            fleet: Fleet { no: number(row, 0)?, app: task.app, provider: task.provider },
            cursor: DeviceId::from_raw(number(row, 1)?),
            as_of: DeviceId::from_raw(number(row, 2)?),
            state: code(row, 3, CampaignState::from_code)?,
            class: code(row, 4, Class::from_code)?,
        })
    };
    let key = params![int(task.message.raw()), int(task.app.raw()), task.provider.code()];
    one(connection, sql, key, read)
}

const fn ended() -> Expanded {
    Expanded { tickets: Vec::new(), done: true, paused: false }
}
