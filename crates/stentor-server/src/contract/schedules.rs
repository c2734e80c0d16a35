//! Schedules: requests and replies.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use stentor_core::id::ScheduleId;
use stentor_core::schedule::{CatchUp, Schedule};
use stentor_core::time::Timestamp;
use utoipa::ToSchema;

use super::Instant;
use super::messages::{MessageRequest, SpecView};

/// A recurring message.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ScheduleRequest {
    /// Display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Five fields: minute, hour, day of month, month, day of week.
    #[schema(example = "0 9 * * *")]
    pub cron: String,
    /// IANA time zone of the cron pattern.
    #[schema(example = "Europe/Rome")]
    pub time_zone: String,
    /// Last possible instant of an occurrence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub until: Option<String>,
    /// Handling of occurrences missed while the server was down: `once` (the latest fires), `skip` or `all`.
    #[serde(default)]
    #[schema(value_type = Option<String>, pattern = "^(once|skip|all)$")]
    pub catch_up: CatchUp,
    /// Message of each occurrence; without `send_at` and `dry_run`.
    pub message: MessageRequest,
}

/// A schedule with its next occurrences.
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
    /// True if messages start exactly on time. Otherwise those to an audience start some seconds later.
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

/// A page of the schedules.
#[derive(Serialize, ToSchema)]
pub struct ScheduleList {
    pub(crate) schedules: Vec<ScheduleView>,
    /// Schedules that cannot be read, in the same order; absent if there are none. They can be deleted.
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
