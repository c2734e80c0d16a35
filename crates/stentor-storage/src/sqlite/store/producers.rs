//! Rows of producers: how far the audience of a campaign at a provider was expanded.

use rusqlite::Connection;
use stentor_core::campaign::CampaignState;
use stentor_core::chunk::{Lane, TrafficClass};
use stentor_core::device::ProviderKind;
use stentor_core::id::{AppId, CampaignId, DeviceId, MessageId};
use stentor_core::ports::store::ProducerTask;

use super::app_providers::AppProvider;
use crate::sql::{Done, Row, code, int, number, one, params, readable, run};

/// Where a producer stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) fleet: AppProvider,
    pub(super) cursor: DeviceId,
    pub(super) as_of: DeviceId,
    pub(super) state: CampaignState,
    class: TrafficClass,
}

impl Position {
    /// Returns the queue of its chunks.
    pub(super) const fn lane(&self) -> Lane {
        Lane { provider: self.fleet.provider, app: self.fleet.app, class: self.class }
    }
}

/// Finds where a producer stands, if it has not ended.
pub(super) fn find(connection: &Connection, task: ProducerTask) -> Done<Option<Position>> {
    let sql = "SELECT p.fleet, p.cursor, coalesce(k.as_of, 0), k.state, k.class
        FROM producers p JOIN fleets f ON f.no = p.fleet JOIN campaigns k ON k.id = p.campaign
        WHERE p.campaign = ?1 AND f.app = ?2 AND f.provider = ?3";
    let read = |row: &Row<'_>| {
        Ok(Position {
            fleet: AppProvider { no: number(row, 0)?, app: task.app, provider: task.provider },
            cursor: DeviceId::from_raw(number(row, 1)?),
            as_of: DeviceId::from_raw(number(row, 2)?),
            state: code(row, 3, CampaignState::from_code)?,
            class: code(row, 4, TrafficClass::from_code)?,
        })
    };
    let key = params![int(task.message.raw()), int(task.app.raw()), task.provider.code()];
    one(connection, sql, key, read)
}

/// Lists those that have not ended and whose campaign runs.
pub(super) fn running(connection: &Connection) -> Done<Vec<ProducerTask>> {
    let sql = "SELECT p.campaign, f.app, f.provider FROM producers p JOIN campaigns k ON k.id = p.campaign
        JOIN fleets f ON f.no = p.fleet WHERE k.state = ?1 ORDER BY p.campaign, f.provider";
    let task = |row: &Row<'_>| {
        let (message, app) = (MessageId::from_raw(number(row, 0)?), AppId::from_raw(number(row, 1)?));
        Ok(ProducerTask { message, app, provider: code(row, 2, ProviderKind::from_code)? })
    };
    let rows = (sql, [CampaignState::Running.code()]);
    Ok(readable(connection, "producers", rows, usize::MAX, task)?.0)
}

/// Keeps one, at the beginning.
pub(super) fn add(connection: &Connection, campaign: CampaignId, fleet: AppProvider) -> Done<()> {
    let sql = "INSERT INTO producers (campaign, fleet, cursor) VALUES (?1, ?2, 0)";
    run(connection, sql, [int(campaign.raw()), int(fleet.no)]).map(drop)
}

/// Lets one go on after a device.
pub(super) fn advance(
    connection: &Connection,
    campaign: CampaignId,
    fleet: AppProvider,
    cursor: DeviceId,
) -> Done<()> {
    let sql = "UPDATE producers SET cursor = ?3 WHERE campaign = ?1 AND fleet = ?2";
    run(connection, sql, [int(campaign.raw()), int(fleet.no), int(cursor.raw())]).map(drop)
}

/// Ends those of a campaign, at one provider or at all.
pub(super) fn end(connection: &Connection, campaign: CampaignId, only: Option<ProviderKind>) -> Done<()> {
    let Some(provider) = only else {
        return run(connection, "DELETE FROM producers WHERE campaign = ?1", [int(campaign.raw())]).map(drop);
    };
    let sql = "DELETE FROM producers WHERE campaign = ?1 AND fleet = (SELECT no FROM fleets
        WHERE app = (SELECT app FROM campaigns WHERE id = ?1) AND provider = ?2)";
    run(connection, sql, params![int(campaign.raw()), provider.code()]).map(drop)
}
