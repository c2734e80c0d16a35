//! What can be asked of schedules.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use stentor_core::id::ScheduleId;
use stentor_core::schedule::{CatchUp, Schedule};
use stentor_core::time::Timestamp;
use utoipa::ToSchema;

use super::Instant;
use super::messages::{MessageRequest, SpecView};

/// A recurring message as an app server asks for it.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ScheduleRequest {
    /// What people call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Five fields: minute, hour, day of month, month, day of week.
    #[schema(example = "0 9 * * *")]
    pub cron: String,
    /// IANA time zone in which the pattern is read.
    #[schema(example = "Europe/Rome")]
    pub time_zone: String,
    /// No occurrence after this instant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub until: Option<String>,
    /// What happens to occurrences missed while the server was down: `once` (the latest fires), `skip` or `all`.
    #[serde(default)]
    #[schema(value_type = Option<String>, pattern = "^(once|skip|all)$")]
    pub catch_up: CatchUp,
    /// What each occurrence sends; without `send_at` and `dry_run`.
    pub message: MessageRequest,
}

/// A schedule with what comes next.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Schedule)]
pub struct ScheduleView {
    #[schema(value_type = String)]
    pub(crate) id: ScheduleId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    pub(crate) cron: String,
    pub(crate) time_zone: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) until: Option<Instant>,
    #[schema(value_type = String)]
    pub(crate) catch_up: CatchUp,
    /// Whether audiences start at the very tick instead of some seconds later.
    pub(crate) exact: bool,
    /// `active`, `paused`, `canceled`, `finished` or `damaged`.
    #[schema(value_type = String)]
    pub(crate) state: Cow<'static, str>,
    pub(crate) created_at: Instant,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_due: Option<Instant>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_fired: Option<Instant>,
    pub(crate) message: SpecView,
    /// The next five occurrences.
    pub(crate) upcoming: Vec<Instant>,
}

/// A piece of the schedules.
#[derive(Serialize, ToSchema)]
pub struct ScheduleList {
    pub(crate) schedules: Vec<ScheduleView>,
    /// Those that cannot be read, in the same order; absent when there is none. They can be deleted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Option<Vec<String>>)]
    pub(crate) damaged: Vec<ScheduleId>,
    /// Cursor of the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
}

impl ScheduleView {
    /// Shows a schedule with its next occurrences.
    pub(crate) fn new(schedule: Schedule, upcoming: Vec<Timestamp>) -> Self {
        Self {
            id: schedule.id,
            name: schedule.name.map(String::from),
            cron: schedule.recurrence.cron,
            time_zone: schedule.recurrence.time_zone.into(),
            until: schedule.recurrence.until.map(Instant),
            catch_up: schedule.recurrence.catch_up,
            exact: schedule.recurrence.exact,
            state: schedule.state.as_str().into(),
            created_at: schedule.created_at.into(),
            next_due: schedule.next_due.map(Instant),
            last_fired: schedule.last_fired.map(Instant),
            message: schedule.spec.into(),
            upcoming: upcoming.into_iter().map(Instant).collect(),
        }
    }
}
