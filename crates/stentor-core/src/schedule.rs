//! Schedules: recurring messages.

use serde::{Deserialize, Serialize};

use crate::codes::codes;
use crate::id::{AppId, ScheduleId};
use crate::message::MessageSpec;
use crate::name::{Label, TimeZoneName};
use crate::time::Timestamp;
use crate::word::words;

codes! {
    /// The state of a schedule.
    ScheduleState {
        /// Fires when due.
        Active = 0, "active";
        /// Fires nothing until resumed; missed ticks are not made up for.
        Paused = 1, "paused";
        /// Ended by its owner.
        Canceled = 2, "canceled";
        /// Has no further occurrence.
        Finished = 3, "finished";
        /// Its stored record cannot be read: it fires nothing until it is canceled.
        Damaged = 4, "damaged";
        /// Deleted by its owner: kept because of the messages that it sent, and no longer shown.
        Deleted = 5, "deleted";
    }
}

impl ScheduleState {
    /// Returns true if a schedule may change from this state to `next`: an ended schedule can only be deleted.
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

/// The treatment of ticks missed while the server was down.
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

/// The times at which a schedule fires.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recurrence {
    /// Cron pattern of five fields (minute to day of week); checked by the code that has the calendar.
    pub cron: String,
    /// The time zone of the pattern.
    pub time_zone: TimeZoneName,
    /// No occurrence after this.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub until: Option<Timestamp>,
    /// The treatment of missed ticks.
    #[serde(default)]
    pub catch_up: CatchUp,
    /// True if audiences are due exactly at the tick, although ticks fall on full minutes; otherwise they are spread.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exact: bool,
}

/// A recurring message.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    /// Its id.
    pub id: ScheduleId,
    /// The owning app.
    pub app: AppId,
    /// The name shown to people.
    pub name: Option<Label>,
    /// The message of each occurrence.
    pub spec: MessageSpec,
    /// Its recurrence.
    pub recurrence: Recurrence,
    /// Its state.
    pub state: ScheduleState,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Its next occurrence; `None` when there is none.
    pub next_due: Option<Timestamp>,
    /// Its last occurrence that was sent.
    pub last_fired: Option<Timestamp>,
}
