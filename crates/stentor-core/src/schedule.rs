//! Schedules: messages that are sent again and again.

use serde::{Deserialize, Serialize};

use crate::codes::codes;
use crate::id::{AppId, ScheduleId};
use crate::message::MessageSpec;
use crate::name::{Label, TimeZoneName};
use crate::time::Timestamp;
use crate::word::words;

codes! {
    /// Where a schedule is.
    ScheduleState {
        /// Fires when due.
        Active = 0, "active";
        /// Fires nothing until resumed; ticks of that time are not made up for.
        Paused = 1, "paused";
        /// Ended by its owner.
        Canceled = 2, "canceled";
        /// Has no further occurrence.
        Finished = 3, "finished";
        /// What is kept of it cannot be read: it fires nothing until it is canceled.
        Damaged = 4, "damaged";
        /// Deleted by its owner: kept for what it sent, and shown to nobody.
        Deleted = 5, "deleted";
    }
}

impl ScheduleState {
    /// Whether a schedule in this state may come into another: what ended can only be deleted.
    #[must_use]
    pub const fn may_become(self, next: Self) -> bool {
        match self {
            Self::Active | Self::Paused => true,
            Self::Damaged => matches!(next, Self::Canceled | Self::Deleted),
            Self::Canceled | Self::Finished => matches!(next, Self::Deleted),
            Self::Deleted => false,
        }
    }
}

/// What happens to ticks missed while the server was down.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CatchUp {
    /// The latest missed tick fires, once; earlier ones are skipped.
    #[default]
    Once,
    /// No missed tick fires.
    Skip,
    /// Every missed tick fires, in order.
    All,
}

words! { CatchUp { Once = "once"; Skip = "skip"; All = "all"; } }

/// When a schedule fires.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recurrence {
    /// Cron pattern of five fields (minute to day of week); checked where the calendar is.
    pub cron: String,
    /// The zone in which the pattern is read.
    pub time_zone: TimeZoneName,
    /// No occurrence after this.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub until: Option<Timestamp>,
    /// What to do about missed ticks.
    #[serde(default)]
    pub catch_up: CatchUp,
    /// Whether audiences are due at the very tick, though that is a full minute.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exact: bool,
}

/// A recurring message.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    /// Its id.
    pub id: ScheduleId,
    /// Whose it is.
    pub app: AppId,
    /// What people call it.
    pub name: Option<Label>,
    /// What each occurrence sends.
    pub spec: MessageSpec,
    /// When it fires.
    pub recurrence: Recurrence,
    /// Where it is.
    pub state: ScheduleState,
    /// When it was made.
    pub created_at: Timestamp,
    /// Its next occurrence; `None` when there is none.
    pub next_due: Option<Timestamp>,
    /// Its last occurrence that was sent.
    pub last_fired: Option<Timestamp>,
}
