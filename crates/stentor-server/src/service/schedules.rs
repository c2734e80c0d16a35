//! Schedules: recurring messages.

use stentor_core::audit::AuditAction;
use stentor_core::error::Invalid;
use stentor_core::id::{AppId, ScheduleId};
use stentor_core::name::{Label, TimeZoneName};
use stentor_core::ports::store::{Change, Changed, Idempotent, Listed, NewSchedule, Page, StoreError};
use stentor_core::schedule::{Recurrence, Schedule, ScheduleState};
use stentor_core::time::Timestamp;

use super::audit::{AuditSubject, Author, unexpected};
use super::calendar::instant;
use super::live_activities::check_order;
use super::long_list::LongList;
use super::precondition::precondition;
use super::proposals::unproposable;
use super::repeat::{key_reused, to_keep};
use super::{Caller, ErrorCode, Origin, Problem, Service, ServiceResult};
use crate::contract::messages::MessageRequest;
use crate::contract::schedules::{ScheduleList, ScheduleRequest, ScheduleView};
use crate::contract::table::{
    CancelSchedule, CreateSchedule, ListSchedules, PauseSchedule, RemoveSchedule, ResumeSchedule,
    ShowSchedule,
};
use crate::contract::{After, Conditional, Kept, Operation, Repeatable, Serve};
use crate::pipeline::calendar;

/// Number of coming occurrences in a view.
const UPCOMING_COUNT: usize = 5;

impl Serve<CreateSchedule> for Service {
    async fn serve(
        &self,
        (caller, from): (Caller, Origin),
        (): (),
        Repeatable { request, repeat }: Repeatable<ScheduleRequest>,
    ) -> ServiceResult<Kept<ScheduleView>> {
        let author = Author::for_caller(caller, from);
        let subject = AuditSubject::new(AuditAction::ScheduleCreate, caller.app(), "");
        self.permitted(&author, &subject, caller.allow::<CreateSchedule>()).await?;
        if let Some(reply) = self.replay(caller.app(), repeat.as_ref()).await? {
            return Ok(reply);
        }
        let schedule = self.schedule_of(caller.app(), request)?;
        self.check_content(caller.app(), &schedule.spec)
            .await
            .map_err(|problem| problem.within("message"))?;
        check_order(&schedule.spec, true).map_err(|invalid| invalid.within("message"))?;
        self.require_approval(caller, &schedule.spec, true).await.map_err(unproposable)?;
        let subject = named(subject, &schedule);
        let reply = view(schedule.clone());
        let idempotency = repeat.map(|repeat| to_keep(repeat, &reply)).transpose()?;
        let max_count = Some(self.settings.limits.schedules_max_count);
        let change = Change::CreateSchedule(Box::new(NewSchedule { schedule, idempotency, max_count }));
        let changed = self.change(author, subject, change).await.map_err(|problem| match problem.code {
            ErrorCode::LimitReached => problem.with_hint("cancel one that is no longer needed"),
            _ => problem,
        });
        match changed? {
            Changed::Stored(Idempotent::Done(())) => {
                self.pipeline.wake();
                Ok(Kept { reply, replayed: false })
            }
            Changed::Stored(Idempotent::Replayed(reply)) => self.replayed(reply),
            Changed::Stored(Idempotent::KeyReused) => Err(key_reused()),
            _ => Err(unexpected()),
        }
    }
}

impl Serve<ShowSchedule> for Service {
    async fn serve(&self, caller: Caller, id: ScheduleId, (): ()) -> ServiceResult<ScheduleView> {
        caller.allow::<ShowSchedule>()?;
        Ok(view(self.shown(caller.app(), id).await?))
    }
}

impl Serve<ListSchedules> for Service {
    async fn serve(&self, caller: Caller, (): (), page: After) -> ServiceResult<ScheduleList> {
        let page = page.page(|text| text.parse().ok().map(ScheduleId::raw))?;
        caller.allow::<ListSchedules>()?;
        let (mut list, mut after, mut damaged) = (LongList::new(page.limit), page.after, Vec::new());
        while let Some(limit) = list.wanted() {
            let Listed { readable: found, broken } =
                self.store.schedules(caller.app(), Page { after, limit }).await?;
            damaged.extend(broken);
            after = found.last().map_or(after, |last| last.id.raw());
            list.add(limit, found.into_iter().map(|one| (one.id.to_string(), view(one))));
        }
        let (schedules, next) = list.page();
        Ok(ScheduleList { schedules, damaged, next })
    }
}

impl Serve<RemoveSchedule> for Service {
    async fn serve(
        &self,
        (caller, from): (Caller, Origin),
        id: ScheduleId,
        Conditional { condition, .. }: Conditional<()>,
    ) -> ServiceResult<()> {
        let author = Author::for_caller(caller, from);
        let subject = AuditSubject::new(AuditAction::ScheduleCancel, caller.app(), id);
        self.permitted(&author, &subject, caller.allow::<RemoveSchedule>()).await?;
        let change = match self.store.schedule(caller.app(), id).await {
            // A damaged schedule has no state for a condition.
            Err(StoreError::Damaged(_)) if condition.is_none() => {
                Change::DeleteBrokenSchedule(caller.app(), id)
            }
            _ => Change::DeleteSchedule(caller.app(), id, precondition(condition, view)),
        };
        self.change(author, subject, change).await?;
        self.pipeline.wake();
        Ok(())
    }
}

impl Serve<CancelSchedule> for Service {
    async fn serve(
        &self,
        (caller, from): (Caller, Origin),
        id: ScheduleId,
        (): (),
    ) -> ServiceResult<Option<ScheduleView>> {
        if let Err(StoreError::Damaged(_)) = self.store.schedule(caller.app(), id).await {
            return Serve::<RemoveSchedule>::serve(self, (caller, from), id, ().into()).await.map(|()| None);
        }
        self.set_schedule::<CancelSchedule>((caller, from), id, ScheduleState::Canceled).await.map(Some)
    }
}

impl Serve<PauseSchedule> for Service {
    async fn serve(&self, by: (Caller, Origin), id: ScheduleId, (): ()) -> ServiceResult<ScheduleView> {
        self.set_schedule::<PauseSchedule>(by, id, ScheduleState::Paused).await
    }
}

impl Serve<ResumeSchedule> for Service {
    async fn serve(&self, by: (Caller, Origin), id: ScheduleId, (): ()) -> ServiceResult<ScheduleView> {
        self.set_schedule::<ResumeSchedule>(by, id, ScheduleState::Active).await
    }
}

impl Service {
    /// Reads a schedule that was not deleted.
    async fn shown(&self, app: AppId, id: ScheduleId) -> ServiceResult<Schedule> {
        let schedule = self.store.schedule(app, id).await?;
        match schedule.state {
            ScheduleState::Deleted => Err(Problem::not_found("schedule")),
            _ => Ok(schedule),
        }
    }

    /// Pauses, resumes or cancels a schedule. Ticks missed during a pause are not caught up.
    async fn set_schedule<O: Operation>(
        &self,
        (caller, from): (Caller, Origin),
        id: ScheduleId,
        state: ScheduleState,
    ) -> ServiceResult<ScheduleView> {
        let author = Author::for_caller(caller, from);
        let subject = AuditSubject::new(audited(state), caller.app(), id);
        self.permitted(&author, &subject, caller.allow::<O>()).await?;
        let present = self.shown(caller.app(), id).await?;
        // A repeated call changes nothing, not even the next due time.
        if present.state == state {
            return Ok(view(present));
        }
        // Ticks of the pause are skipped: the next one is counted from now.
        let next_due = match state {
            ScheduleState::Active => calendar::next_tick(&present.recurrence, self.now())?,
            _ => None,
        };
        // It would never fire, and as an active one it would count against the limit.
        let state = if state == ScheduleState::Active && next_due.is_none() {
            ScheduleState::Finished
        } else {
            state
        };
        let change = Change::SetSchedule(caller.app(), id, state, next_due);
        let Changed::Schedule(schedule) = self.change(author, subject, change).await? else {
            return Err(unexpected());
        };
        self.pipeline.wake();
        Ok(view(*schedule))
    }

    fn schedule_of(&self, app: AppId, request: ScheduleRequest) -> ServiceResult<Schedule> {
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
        // A schedule that never fires is a mistake, and refused.
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
}

/// Builds the view of a schedule with its next occurrences.
fn view(schedule: Schedule) -> ScheduleView {
    let active = schedule.state == ScheduleState::Active;
    let upcoming = match schedule.next_due.filter(|_| active) {
        Some(next) => {
            let rest = calendar::upcoming(&schedule.recurrence, next, UPCOMING_COUNT - 1);
            std::iter::once(next).chain(rest.unwrap_or_default()).collect()
        }
        None => Vec::new(),
    };
    ScheduleView::new(schedule, upcoming)
}

/// Returns the action that the caller requested; resuming a schedule without further occurrences finishes it.
const fn audited(state: ScheduleState) -> AuditAction {
    match state {
        ScheduleState::Active | ScheduleState::Finished => AuditAction::ScheduleResume,
        ScheduleState::Paused => AuditAction::SchedulePause,
        ScheduleState::Canceled | ScheduleState::Damaged | ScheduleState::Deleted => {
            AuditAction::ScheduleCancel
        }
    }
}

fn named(subject: AuditSubject, schedule: &Schedule) -> AuditSubject {
    let name = schedule.name.as_ref().map(|name| format!(" {}", name.as_str())).unwrap_or_default();
    let subject = AuditSubject { thing: schedule.id.to_string(), ..subject };
    subject.with_detail(&format!(
        "{} {}{name}",
        schedule.recurrence.cron,
        schedule.recurrence.time_zone.as_str()
    ))
}

/// Returns the error for a schedule without occurrences: the pattern never fires, or its end comes before.
fn without_occurrence(mut recurrence: Recurrence, now: Timestamp) -> Problem {
    // The same pattern without its end shows which of both is the cause.
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
        return Err(Invalid::new(
            "message.dry_run",
            "has no meaning here: use `messages.send` for a dry run",
        ));
    }
    Ok(())
}
