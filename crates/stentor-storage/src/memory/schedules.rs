use async_trait::async_trait;
use stentor_core::campaign::CampaignState;
use stentor_core::id::{AppId, ScheduleId};
use stentor_core::ports::clock::Timestamp;
use stentor_core::ports::store::{IdempotentReply, Occurrence, Page, ScheduleStore, StoreError, Storing};
use stentor_core::schedule::{Schedule, ScheduleState};

use super::MemoryStore;
use super::state::State;

#[async_trait]
impl ScheduleStore for MemoryStore {
    async fn create_schedule(
        &self,
        schedule: &Schedule,
        idempotency: Option<IdempotentReply>,
    ) -> Result<Storing<()>, StoreError> {
        self.lock().create_schedule(schedule, idempotency)
    }

    async fn schedule(&self, app: AppId, id: ScheduleId) -> Result<Schedule, StoreError> {
        self.lock().schedule_mut(app, id).cloned()
    }

    async fn schedules(&self, app: AppId, page: Page) -> Result<Vec<Schedule>, StoreError> {
        let state = self.lock();
        let own = state.schedules.values().filter(|one| one.app == app && one.id.raw() > page.after);
        let own = own.filter(|one| one.state != ScheduleState::Deleted);
        Ok(own.take(page.limit).cloned().collect())
    }

    async fn set_schedule(
        &self,
        app: AppId,
        id: ScheduleId,
        state: ScheduleState,
        next_due: Option<Timestamp>,
    ) -> Result<Schedule, StoreError> {
        let mut kept = self.lock();
        let schedule = kept.schedule_mut(app, id)?;
        if !schedule.state.may_become(state) {
            return Err(StoreError::Conflict(format!("the schedule is {}", schedule.state)));
        }
        (schedule.state, schedule.next_due) = (state, next_due);
        Ok(schedule.clone())
    }

    async fn due_schedules(&self, now: Timestamp, limit: usize) -> Result<Vec<Schedule>, StoreError> {
        let state = self.lock();
        let active = state.schedules.values().filter(|one| one.state == ScheduleState::Active);
        let mut due: Vec<_> = active.filter(|one| one.next_due.is_some_and(|at| at <= now)).collect();
        due.sort_by_key(|one| (one.next_due, one.id));
        Ok(due.into_iter().take(limit).cloned().collect())
    }

    async fn fire(&self, occurrence: &Occurrence) -> Result<bool, StoreError> {
        self.lock().fire(occurrence)
    }

    async fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.lock().next_due())
    }
}

impl State {
    fn create_schedule(
        &mut self,
        schedule: &Schedule,
        idempotency: Option<IdempotentReply>,
    ) -> Result<Storing<()>, StoreError> {
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
        Ok(Storing::Done(()))
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
