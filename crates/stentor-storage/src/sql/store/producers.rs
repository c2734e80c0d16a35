//! Rows of producers: how far the audience of a campaign at a provider was expanded.

use stentor_core::campaign::CampaignState;
use stentor_core::chunk::{Lane, TrafficClass};
use stentor_core::device::ProviderKind;
use stentor_core::id::{AppId, CampaignId, DeviceId, MessageId};
use stentor_core::ports::store::ProducerTask;

use super::app_providers::AppProvider;
use crate::sql::dialect::DialectText;
use crate::sql::{
    Connection, Done, Row, code, exists, int, maybe_number, number, one, params, readable, run,
};

/// The position of a producer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) fleet: AppProvider,
    pub(crate) cursor: DeviceId,
    pub(crate) as_of: DeviceId,
    pub(crate) state: CampaignState,
    class: TrafficClass,
    /// The instance that expands it.
    instance: Option<u64>,
}

impl Position {
    /// Returns the queue of its chunks.
    pub(crate) const fn lane(&self) -> Lane {
        Lane { provider: self.fleet.provider, app: self.fleet.app, class: self.class }
    }

    /// Returns true if another node expands it.
    pub(crate) fn is_anothers(&self, own: Option<u64>) -> bool {
        own.is_some() && self.instance != own
    }
}

static FIND: DialectText = DialectText::new(|dialect| {
    format!(
        "SELECT p.fleet, p.cursor, coalesce(k.as_of, 0), k.state, k.class, {}
        FROM producers p JOIN fleets f ON f.no = p.fleet JOIN campaigns k ON k.id = p.campaign
        WHERE p.campaign = ?1 AND f.app = ?2 AND f.provider = ?3",
        dialect.producer_instance
    )
});

/// Finds where a producer stands, if it has not ended.
pub(crate) fn find(connection: &Connection, task: ProducerTask) -> Done<Option<Position>> {
    let read = |row: &Row<'_>| {
        Ok(Position {
            fleet: AppProvider { no: number(row, 0)?, app: task.app, provider: task.provider },
            cursor: DeviceId::from_raw(number(row, 1)?),
            as_of: DeviceId::from_raw(number(row, 2)?),
            state: code(row, 3, CampaignState::from_code)?,
            class: code(row, 4, TrafficClass::from_code)?,
            instance: maybe_number(row, 5)?,
        })
    };
    let key = params![int(task.message.raw()), int(task.app.raw()), task.provider.code()];
    one(connection, FIND.of(connection.dialect()), key, read)
}

/// Lists the unfinished producers of running campaigns, of one instance or of all.
pub(crate) fn running(connection: &Connection, only: Option<u64>) -> Done<Vec<ProducerTask>> {
    let sql = "SELECT p.campaign, f.app, f.provider FROM producers p JOIN campaigns k ON k.id = p.campaign
        JOIN fleets f ON f.no = p.fleet WHERE k.state = ?1";
    let task = |row: &Row<'_>| {
        let (message, app) = (MessageId::from_raw(number(row, 0)?), AppId::from_raw(number(row, 1)?));
        Ok(ProducerTask { message, app, provider: code(row, 2, ProviderKind::from_code)? })
    };
    let order = "ORDER BY p.campaign, f.provider";
    let (of_all, of_one) = (format!("{sql} {order}"), format!("{sql} AND p.instance = ?2 {order}"));
    let mut values = params![CampaignState::Running.code()].to_vec();
    values.extend(only.map(|only| int(only).into()));
    let rows = (if only.is_some() { of_one.as_str() } else { of_all.as_str() }, values);
    Ok(readable(connection, "producers", rows, usize::MAX, task)?.0)
}

/// The condition for producers that no live instance expands.
const FREE: &str = "instance IS NULL OR instance NOT IN (SELECT instance FROM nodes)";

/// Returns true if there are producers that no live instance expands.
pub(crate) fn are_free(connection: &Connection) -> Done<bool> {
    exists(connection, &format!("SELECT 1 FROM producers WHERE {FREE} LIMIT 1"), ())
}

/// Assigns to an instance the producers that no live instance expands.
pub(crate) fn claim(connection: &Connection, own: u64) -> Done<()> {
    run(connection, &format!("UPDATE producers SET instance = ?1 WHERE {FREE}"), [int(own)]).map(drop)
}

/// Stores a producer at the beginning of its audience.
pub(crate) fn add(connection: &Connection, campaign: CampaignId, fleet: AppProvider) -> Done<()> {
    let sql = "INSERT INTO producers (campaign, fleet, cursor) VALUES (?1, ?2, 0)";
    run(connection, sql, [int(campaign.raw()), int(fleet.no)]).map(drop)
}

/// Moves a producer's position behind a device.
pub(crate) fn advance(
    connection: &Connection,
    campaign: CampaignId,
    fleet: AppProvider,
    cursor: DeviceId,
) -> Done<()> {
    let sql = "UPDATE producers SET cursor = ?3 WHERE campaign = ?1 AND fleet = ?2";
    run(connection, sql, [int(campaign.raw()), int(fleet.no), int(cursor.raw())]).map(drop)
}

/// Ends those of a campaign, at one provider or at all.
pub(crate) fn end(connection: &Connection, campaign: CampaignId, only: Option<ProviderKind>) -> Done<()> {
    let Some(provider) = only else {
        return run(connection, "DELETE FROM producers WHERE campaign = ?1", [int(campaign.raw())]).map(drop);
    };
    let sql = "DELETE FROM producers WHERE campaign = ?1 AND fleet = (SELECT no FROM fleets
        WHERE app = (SELECT app FROM campaigns WHERE id = ?1) AND provider = ?2)";
    run(connection, sql, params![int(campaign.raw()), provider.code()]).map(drop)
}
