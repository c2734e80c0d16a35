//! The port for schedules.

use async_trait::async_trait;

use super::{Listed, Page, StoreError};
use crate::id::{AppId, ScheduleId};
use crate::message::Message;
use crate::schedule::Schedule;
use crate::time::Timestamp;

/// One firing of a schedule.
#[derive(Debug, Clone, PartialEq)]
pub struct Occurrence {
    /// The schedule.
    pub schedule: ScheduleId,
    /// The tick it stands for; (schedule, instant) fires once.
    pub instant: Timestamp,
    /// The message to send; `None` if the tick is skipped.
    pub message: Option<Message>,
    /// The tick after it; `None` finishes the schedule.
    pub next_due: Option<Timestamp>,
}

/// Operations on schedules.
#[async_trait]
pub trait ScheduleStore: Send + Sync {
    /// Returns one schedule.
    async fn schedule(&self, app: AppId, id: ScheduleId) -> Result<Schedule, StoreError>;

    /// Lists schedules in order of id.
    async fn schedules(&self, app: AppId, page: Page) -> Result<Listed<Schedule, ScheduleId>, StoreError>;

    /// Returns active schedules with a past tick: the earliest first, or all apps in turn if there are more than the limit. Unreadable
    /// schedules are quarantined.
    async fn due_schedules(&self, now: Timestamp, limit: usize) -> Result<Vec<Schedule>, StoreError>;

    /// Stores the occurrence's message and advances the schedule in one transaction. Returns false if the occurrence had fired before or
    /// the schedule is no longer active with this tick.
    ///
    /// The message waits as scheduled until `start_due`; a target removed since then has an empty audience.
    async fn fire(&self, occurrence: &Occurrence) -> Result<bool, StoreError>;

    /// Returns the earliest instant at which a schedule or a scheduled campaign is due.
    async fn next_due(&self) -> Result<Option<Timestamp>, StoreError>;
}
