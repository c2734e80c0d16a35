use async_trait::async_trait;
use stentor_core::campaign::CampaignState;
use stentor_core::id::{AppId, ScheduleId};
use stentor_core::ports::store::{
    Idempotent, IdempotentReply, Occurrence, Page, Precondition, ScheduleStore, StoreError,
};
use stentor_core::schedule::{Schedule, ScheduleState};
use stentor_core::time::Timestamp;

use super::MemoryStore;
use super::state::Tables;
use crate::turns::in_turns;

#[async_trait]
impl ScheduleStore for MemoryStore {
    async fn schedule(&self, app: AppId, id: ScheduleId) -> Result<Schedule, StoreError> {
        self.lock().schedule_mut(app, id).cloned()
    }

    async fn schedules(&self, app: AppId, page: Page) -> Result<Vec<Schedule>, StoreError> {
        let state = self.lock();
        let own = state.schedules.values().filter(|one| one.app == app && one.id.raw() > page.after);
        let own = own.filter(|one| one.state != ScheduleState::Deleted);
        Ok(own.take(page.limit).cloned().collect())
    }

    async fn broken_schedules(&self, _: AppId, _: Page) -> Result<Vec<ScheduleId>, StoreError> {
        Ok(Vec::new())
    }

    async fn quarantine_schedule(&self, id: ScheduleId) -> Result<(), StoreError> {
        if let Some(schedule) = self.lock().schedules.get_mut(&id) {
            (schedule.state, schedule.next_due) = (ScheduleState::Damaged, None);
        }
        Ok(())
    }

    async fn count_schedules(&self, app: AppId) -> Result<u64, StoreError> {
        let state = self.lock();
        let live = [ScheduleState::Active, ScheduleState::Paused];
        let own = state.schedules.values().filter(|one| one.app == app && live.contains(&one.state));
        Ok(own.count() as u64)
    }

    async fn due_schedules(&self, now: Timestamp, limit: usize) -> Result<Vec<Schedule>, StoreError> {
        let state = self.lock();
        let active = state.schedules.values().filter(|one| one.state == ScheduleState::Active);
        let mut due: Vec<_> = active.filter(|one| one.next_due.is_some_and(|at| at <= now)).collect();
        due.sort_by_key(|one| (one.next_due, one.id));
        Ok(by_app(due, |one| one.app, limit).into_iter().cloned().collect())
    }

    async fn fire(&self, occurrence: &Occurrence) -> Result<bool, StoreError> {
        self.lock().fire(occurrence)
    }

    async fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.lock().next_due())
    }
}

/// Takes the earliest of what is sorted; every app in its turn where not all can be taken.
pub(super) fn by_app<T>(sorted: Vec<T>, app: impl Fn(&T) -> AppId, limit: usize) -> Vec<T> {
    if sorted.len() < limit {
        return sorted;
    }
    let mut lists: Vec<(AppId, Vec<T>)> = Vec::new();
    for one in sorted {
        let app = app(&one);
        match lists.iter_mut().find(|(known, _)| *known == app) {
            Some((_, list)) => list.push(one),
            None => lists.push((app, vec![one])),
        }
    }
    in_turns(lists.into_iter().map(|(_, list)| list).collect(), limit)
}

impl Tables {
    pub(super) fn delete_broken_schedule(&mut self, app: AppId, id: ScheduleId) -> Result<(), StoreError> {
        let schedule = self.schedule_mut(app, id)?;
        (schedule.state, schedule.next_due) = (ScheduleState::Deleted, None);
        Ok(())
    }

    pub(super) fn delete_schedule(
        &mut self,
        app: AppId,
        id: ScheduleId,
        precondition: &Precondition<Schedule>,
    ) -> Result<(), StoreError> {
        let schedule = self.schedule_mut(app, id)?;
        if schedule.state == ScheduleState::Deleted {
            return Err(StoreError::NotFound("schedule"));
        }
        precondition.check(|| Ok::<_, StoreError>(Some(schedule.clone())))?;
        (schedule.state, schedule.next_due) = (ScheduleState::Deleted, None);
        Ok(())
    }

    pub(super) fn set_schedule(
        &mut self,
        app: AppId,
        id: ScheduleId,
        state: ScheduleState,
        next_due: Option<Timestamp>,
    ) -> Result<Schedule, StoreError> {
        let schedule = self.schedule_mut(app, id)?;
        if !schedule.state.may_become(state) {
            return Err(StoreError::Conflict(format!("the schedule is {}", schedule.state)));
        }
        (schedule.state, schedule.next_due) = (state, next_due);
        Ok(schedule.clone())
    }

    pub(super) fn create_schedule(
        &mut self,
        schedule: &Schedule,
        idempotency: Option<IdempotentReply>,
    ) -> Result<Idempotent<()>, StoreError> {
        let app = self.apps.get_mut(&schedule.app).ok_or(StoreError::NotFound("app"))?;
        if let Some(given) = &idempotency
            && let Some(known) = app.replay(&given.key, &given.request_hash)
        {
            return Ok(known);
        }
        if self.schedules.contains_key(&schedule.id) {
            return Err(StoreError::Conflict("the schedule id is in use".to_owned()));
        }
        if let Some(given) = idempotency {
            app.keep_reply(given, schedule.created_at);
        }
        self.schedules.insert(schedule.id, schedule.clone());
        Ok(Idempotent::Done(()))
    }

    fn fire(&mut self, occurrence: &Occurrence) -> Result<bool, StoreError> {
        let Occurrence { schedule: id, instant, message, next_due } = occurrence;
        let waits = |one: &Schedule| one.state == ScheduleState::Active && one.next_due == Some(*instant);
        if !self.schedules.get(id).is_some_and(waits) || self.fired.contains(&(*id, *instant)) {
            return Ok(false);
        }
        if let Some(message) = message {
            self.add_campaign(message.clone())?;
        }
        self.fired.insert((*id, *instant));
        if let Some(schedule) = self.schedules.get_mut(id) {
            schedule.next_due = *next_due;
            schedule.last_fired = message.as_ref().map(|_| *instant).or(schedule.last_fired);
            if next_due.is_none() {
                schedule.state = ScheduleState::Finished;
            }
        }
        Ok(true)
    }

    fn next_due(&self) -> Option<Timestamp> {
        let active = self.schedules.values().filter(|one| one.state == ScheduleState::Active);
        let waiting = self.campaigns.values().map(|row| &row.campaign);
        let waiting = waiting.filter(|campaign| campaign.state == CampaignState::Scheduled);
        active.filter_map(|one| one.next_due).chain(waiting.map(|campaign| campaign.due_at)).min()
    }

    fn schedule_mut(&mut self, app: AppId, id: ScheduleId) -> Result<&mut Schedule, StoreError> {
        let own = self.schedules.get_mut(&id).filter(|one| one.app == app);
        own.ok_or(StoreError::NotFound("schedule"))
    }
}
