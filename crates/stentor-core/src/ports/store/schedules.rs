//! The port for schedules.

use async_trait::async_trait;

use super::{Page, StoreError};
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

    /// Lists readable schedules in order of id.
    async fn schedules(&self, app: AppId, page: Page) -> Result<Vec<Schedule>, StoreError>;

    /// Lists the unreadable schedules, which [`schedules`](ScheduleStore::schedules) leaves out.
    async fn broken_schedules(&self, app: AppId, page: Page) -> Result<Vec<ScheduleId>, StoreError>;

    /// Disables a schedule that cannot be read, or cannot fire, so that it delays no other.
    async fn quarantine_schedule(&self, id: ScheduleId) -> Result<(), StoreError>;

    /// Counts an app's schedules that are active or paused.
    async fn count_schedules(&self, app: AppId) -> Result<u64, StoreError>;

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
