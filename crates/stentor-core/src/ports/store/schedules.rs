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
    /// What to send; `None` when the tick is skipped.
    pub message: Option<Message>,
    /// The tick after it; `None` finishes the schedule.
    pub next_due: Option<Timestamp>,
}

/// What is asked of schedules.
#[async_trait]
pub trait ScheduleStore: Send + Sync {
    /// Returns one schedule.
    async fn schedule(&self, app: AppId, id: ScheduleId) -> Result<Schedule, StoreError>;

    /// Lists schedules in order of id, those that can be read.
    async fn schedules(&self, app: AppId, page: Page) -> Result<Vec<Schedule>, StoreError>;

    /// Lists the schedules that such a list leaves out because they cannot be read.
    async fn broken_schedules(&self, app: AppId, page: Page) -> Result<Vec<ScheduleId>, StoreError>;

    /// Lets a schedule that cannot be read, or cannot fire, fire no more, so that it holds up no other.
    async fn quarantine_schedule(&self, id: ScheduleId) -> Result<(), StoreError>;

    /// Counts an app's schedules that are active or paused.
    async fn count_schedules(&self, app: AppId) -> Result<u64, StoreError>;

    /// Returns active schedules whose next tick has come: the earliest first, or every app in its turn where there are more.
    /// Those that cannot be read are quarantined.
    async fn due_schedules(&self, now: Timestamp, limit: usize) -> Result<Vec<Schedule>, StoreError>;

    /// Keeps the occurrence's message and advances the schedule in one transaction; false when it had fired before
    /// or the schedule is no longer active with this tick.
    ///
    /// The message waits as scheduled until `start_due`; a target that has gone since reaches nobody.
    async fn fire(&self, occurrence: &Occurrence) -> Result<bool, StoreError>;

    /// Returns the earliest instant at which a schedule or a scheduled campaign is due.
    async fn next_due(&self) -> Result<Option<Timestamp>, StoreError>;
}
