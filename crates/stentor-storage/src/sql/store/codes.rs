//! Codes of states for the text of statements.
//!
//! A partial index serves a statement only if its condition is in the text: the value of a bound parameter is known too late for
//! the planner, or makes it plan again with each binding. Therefore these codes come from the enums of core, which define each code once.

use stentor_core::campaign::CampaignState;
use stentor_core::chunk::ChunkState;
use stentor_core::schedule::ScheduleState;

pub(crate) const QUEUED: u8 = ChunkState::Queued.code();
pub(crate) const LEASED: u8 = ChunkState::Leased.code();
pub(crate) const SETTLED: u8 = ChunkState::Settled.code();
pub(crate) const QUARANTINED: u8 = ChunkState::Quarantined.code();

pub(crate) const SCHEDULED: u8 = CampaignState::Scheduled.code();
pub(crate) const RUNNING: u8 = CampaignState::Running.code();
pub(crate) const PAUSED: u8 = CampaignState::Paused.code();
pub(crate) const CANCELED: u8 = CampaignState::Canceled.code();

pub(crate) const ACTIVE: u8 = ScheduleState::Active.code();

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::migrations;
    use rusqlite::Connection;

    /// The conditions of the schema's partial indexes, which are never changed once released.
    const CONDITIONS: &[(&str, &[u8])] = &[
        ("chunks_queued", &[QUEUED]),
        ("chunks_queued_by_message", &[QUEUED]),
        ("chunks_leased", &[LEASED]),
        ("chunks_set_aside", &[QUARANTINED]),
        ("campaigns_scheduled", &[SCHEDULED]),
        ("campaigns_open", &[RUNNING, PAUSED]),
        ("campaigns_winding_up", &[CANCELED]),
        ("schedules_due", &[ACTIVE]),
    ];

    #[test]
    fn the_codes_are_those_of_the_partial_indexes() {
        let connection = Connection::open_in_memory().expect("opened");
        migrations::run(&connection, migrations::STORE).expect("made");
        for (index, codes) in CONDITIONS {
            let sql = "SELECT sql FROM sqlite_schema WHERE name = ?1";
            let sql: String = connection.query_row(sql, [index], |row| row.get(0)).expect("an index");
            let condition = match codes {
                [one] => format!("state = {one}"),
                more => {
                    format!("state IN ({})", more.iter().map(u8::to_string).collect::<Vec<_>>().join(", "))
                }
            };
            assert!(sql.contains(&condition), "{sql}: {condition}");
        }
    }
}
