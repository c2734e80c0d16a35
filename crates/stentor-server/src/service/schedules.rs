//! Schedules: messages that are sent again and again.

use serde::Deserialize;
use stentor_core::app::Scope::Send;
use stentor_core::error::Invalid;
use stentor_core::id::{AppId, ScheduleId};
use stentor_core::name::{Label, TimeZoneName};
use stentor_core::ports::clock::Timestamp;
use stentor_core::ports::store::{IdempotentReply, Page, Storing};
use stentor_core::schedule::{CatchUp, Recurrence, Schedule, ScheduleState};
use utoipa::ToSchema;

use super::calendar::instant;
use super::messages::key_reused;
use super::{Answer, Caller, ErrorCode, MessageRequest, Problem, Repeat, Reply, Service};
use crate::pipeline::calendar;

/// How many coming occurrences are shown.
const UPCOMING_COUNT: usize = 5;

/// A recurring message as an app server asks for it.
#[derive(Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ScheduleRequest {
    /// What people call it.
    #[serde(default)]
    pub name: Option<String>,
    /// Five fields: minute, hour, day of month, month, day of week.
    #[schema(example = "0 9 * * *")]
    pub cron: String,
    /// IANA time zone in which the pattern is read.
    #[schema(example = "Europe/Rome")]
    pub time_zone: String,
    /// No occurrence after this instant.
    #[serde(default)]
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
#[derive(Debug, Clone, PartialEq)]
pub struct ScheduleView {
    /// The schedule.
    pub schedule: Schedule,
    /// Its next occurrences.
    pub upcoming: Vec<Timestamp>,
}

impl Service {
    /// Keeps a schedule; `write` makes the reply that a repeat gets again.
    pub async fn create_schedule(
        &self,
        caller: Caller,
        request: ScheduleRequest,
        repeat: Option<Repeat>,
        write: impl FnOnce(&ScheduleView) -> stentor_core::ports::store::StoredReply,
    ) -> Answer<Reply> {
        caller.require(Send)?;
        if let Some(reply) = self.replay(caller.app(), repeat.as_ref()).await? {
            return Ok(reply);
        }
        let schedule = self.schedule_of(caller.app(), request)?;
        self.check_content(caller.app(), &schedule.spec).await.map_err(within_message)?;
        let view = self.view(schedule);
        let reply = write(&view);
        let idempotency = repeat.map(|Repeat { key, request_hash }| {
            let reply = reply.clone();
            IdempotentReply { key, request_hash, reply }
        });
        match self.store.create_schedule(&view.schedule, idempotency).await? {
            Storing::Done(()) => {
                self.belt.wake();
                Ok(Reply { reply, replayed: false })
            }
            Storing::Replayed(reply) => Ok(self.replayed(reply)),
            Storing::KeyReused => Err(key_reused()),
        }
    }

    /// Gives one schedule.
    pub async fn schedule(&self, caller: Caller, id: ScheduleId) -> Answer<ScheduleView> {
        caller.require(Send)?;
        Ok(self.view(self.shown(caller.app(), id).await?))
    }

    /// Reads a schedule that was not deleted.
    async fn shown(&self, app: AppId, id: ScheduleId) -> Answer<Schedule> {
        let schedule = self.store.schedule(app, id).await?;
        match schedule.state {
            ScheduleState::Deleted => Err(Problem::not_found("schedule")),
            _ => Ok(schedule),
        }
    }

    /// Lists schedules in order of id.
    pub async fn schedules(&self, caller: Caller, page: Page) -> Answer<Vec<ScheduleView>> {
        caller.require(Send)?;
        let schedules = self.store.schedules(caller.app(), page).await?;
        Ok(schedules.into_iter().map(|schedule| self.view(schedule)).collect())
    }

    /// Pauses, resumes, cancels or deletes; ticks of a pause are not made up for.
    pub async fn set_schedule(
        &self,
        caller: Caller,
        id: ScheduleId,
        state: ScheduleState,
    ) -> Answer<ScheduleView> {
        caller.require(Send)?;
        let present = self.shown(caller.app(), id).await?;
        if present.state == state {
            return Ok(self.view(present));
        }
        let next_due = match state {
            ScheduleState::Active => calendar::next_tick(&present.recurrence, self.now())?,
            _ => None,
        };
        let state = if state == ScheduleState::Active && next_due.is_none() {
            ScheduleState::Finished
        } else {
            state
        };
        let schedule = self.store.set_schedule(caller.app(), id, state, next_due).await?;
        self.belt.wake();
        Ok(self.view(schedule))
    }

    fn schedule_of(&self, app: AppId, request: ScheduleRequest) -> Answer<Schedule> {
        let now = self.now();
        refuse_sending_fields(&request.message)?;
        let recurrence = Recurrence {
            cron: request.cron,
            time_zone: TimeZoneName::new(request.time_zone)?,
            until: request.until.map(|text| instant("until", &text)).transpose()?,
            catch_up: request.catch_up,
            exact: request.message.exact,
        };
        let next_due = calendar::next_tick(&recurrence, now)?;
        if next_due.is_none() {
            return Err(without_occurrence(recurrence, now));
        }
        Ok(Schedule {
            id: ScheduleId::from_raw(self.next_id(now)),
            app,
            name: request.name.map(Label::new).transpose()?,
            spec: request.message.spec().map_err(|invalid| invalid.within("message"))?,
            recurrence,
            state: ScheduleState::Active,
            created_at: now,
            next_due,
            last_fired: None,
        })
    }

    fn view(&self, schedule: Schedule) -> ScheduleView {
        let active = schedule.state == ScheduleState::Active;
        let upcoming = match schedule.next_due.filter(|_| active) {
            Some(next) => {
                let rest = calendar::upcoming(&schedule.recurrence, next, UPCOMING_COUNT - 1);
                std::iter::once(next).chain(rest.unwrap_or_default()).collect()
            }
            None => Vec::new(),
        };
        ScheduleView { schedule, upcoming }
    }
}

/// Tells whether it is the pattern that never fires, or the end that comes before.
fn without_occurrence(mut recurrence: Recurrence, now: Timestamp) -> Problem {
    recurrence.until = None;
    match calendar::next_tick(&recurrence, now) {
        Ok(Some(_)) => {
            Problem::new(ErrorCode::Conflict, "there is no occurrence from now until then").at("until")
        }
        _ => Problem::field("cron", "has no occurrence from now on"),
    }
}

fn refuse_sending_fields(message: &MessageRequest) -> Result<(), Invalid> {
    if message.send_at.is_some() {
        return Err(Invalid::new("message.send_at", "has no meaning here: `cron` says when"));
    }
    if message.dry_run {
        return Err(Invalid::new("message.dry_run", "has no meaning here: send a dry run to /v1/messages"));
    }
    Ok(())
}

fn within_message(problem: Problem) -> Problem {
    match &problem.field {
        Some(field) if problem.code == ErrorCode::InvalidField => {
            Problem { field: Some(format!("message.{field}")), ..problem }
        }
        _ => problem,
    }
}
