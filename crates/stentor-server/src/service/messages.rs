//! Messages: checked against each push service that they may reach, then stored, then answered.

use std::sync::Arc;
use std::time::Duration;

use stentor_core::device::ProviderKind;
use stentor_core::error::Invalid;
use stentor_core::id::{AppId, MessageId};
use stentor_core::message::{Content, Message, MessageSpec, Notification, Ttl};
use stentor_core::name::{CollapseKey, ExternalId, GroupName, TopicName};
use stentor_core::ports::store::{Accepted, Idempotent, NewMessage, Store, StoreError};
use stentor_core::target::{Target, TokenTarget};
use stentor_core::time::Timestamp;
use stentor_core::topic::Condition;
use tracing::Instrument as _;

use super::calendar::instant;
use super::devices::read_token;
use super::live_activities::check_order;
use super::repeat::{key_reused, to_keep};
use super::{Caller, ErrorCode, Problem, Service, ServiceCounters, ServiceResult};
use crate::contract::messages::{
    DryRun, MessageAccepted, MessageRequest, MessageView, Sent, TargetRequest, TokenRequest, named_override,
};
use crate::contract::table::{SendMessage, ShowMessage};
use crate::contract::{Kept, Repeat, Repeatable, Serve};
use crate::pipeline::calendar::off_the_minute;
use crate::pipeline::{AtOncePlace, FullLane, Pipeline};
use crate::trace;

/// Longest time ahead for the due time of a message.
const SEND_AT_MAX: Duration = Duration::from_secs(366 * 24 * 3_600);

impl TokenRequest {
    fn checked(self) -> Result<TokenTarget, Invalid> {
        let within = |invalid: Invalid| invalid.within("target.token");
        let provider = self.provider.or(stentor_providers::usual_provider(self.platform));
        let provider = provider.ok_or_else(|| {
            within(Invalid::new("provider", format!("must be given for {}", self.platform)))
        })?;
        let token = read_token(provider, self.token).map_err(within)?;
        Ok(TokenTarget { platform: self.platform, provider, token })
    }
}

impl TargetRequest {
    fn checked(self) -> Result<Target, Invalid> {
        fn renamed(invalid: Invalid) -> Invalid {
            invalid.within("target")
        }
        let target = match self {
            Self::Device(id) => Target::Device(id),
            Self::Devices(ids) => Target::Devices(ids),
            Self::Token(token) => Target::Token(token.checked()?),
            Self::User(user) => Target::User(ExternalId::new(user).map_err(renamed)?),
            Self::Group(group) => Target::Group(GroupName::new(group).map_err(renamed)?),
            Self::Topic(topic) => Target::Topic(TopicName::new(topic).map_err(renamed)?),
            Self::Condition(text) => Target::Condition(Condition::parse(&text).map_err(renamed)?),
            Self::Everyone => Target::Everyone,
        };
        target.checked()
    }
}

/// Parses a collapse key that every push service can carry as the value of a header (RFC 9113, 8.2.1). Keys stored before this rule existed
/// are still read.
fn transmittable(text: String) -> Result<CollapseKey, Invalid> {
    if text.starts_with(' ') || text.ends_with(' ') {
        return Err(Invalid::new(
            "collapse_key",
            "must not begin or end with a space: no header can carry it",
        ));
    }
    CollapseKey::new(text)
}

impl MessageRequest {
    /// Checks everything that does not depend on a push service. The result can be stored and read back.
    pub fn spec(self) -> Result<MessageSpec, Invalid> {
        let notification = self.notification.map(|given| Notification {
            title: given.title,
            body: given.body,
            image: given.image,
        });
        MessageSpec {
            target: self.target.checked()?,
            content: Content { notification, data: self.data, overrides: self.overrides },
            priority: self.priority,
            ttl: self.ttl_seconds.map(Ttl::from_seconds).transpose()?.unwrap_or_default(),
            collapse_key: self.collapse_key.map(transmittable).transpose()?,
        }
        .checked()
        .map_err(named_override)
    }

    /// Checks everything that does not depend on a push service, and the due time.
    pub(super) fn draft(self, now: Timestamp) -> ServiceResult<MessageDraft> {
        let (due_at, exact) = (self.due_at(now)?, self.exact);
        Ok(MessageDraft { spec: self.spec()?, due_at, exact })
    }

    fn due_at(&self, now: Timestamp) -> ServiceResult<Timestamp> {
        let Some(text) = &self.send_at else { return Ok(now) };
        let due = instant("send_at", text)?;
        if due > now.plus(SEND_AT_MAX) {
            return Err(Problem::new(ErrorCode::LimitReached, "must be at most 366 days ahead").at("send_at"));
        }
        // A past instant counts as now, because the time to live counts from the due time.
        Ok(due.max(now))
    }
}

impl Serve<SendMessage> for Service {
    async fn serve(
        &self,
        caller: Caller,
        (): (),
        Repeatable { request, repeat }: Repeatable<MessageRequest>,
    ) -> ServiceResult<Sent> {
        caller.allow::<SendMessage>()?;
        let app = caller.app();
        if let Some(reply) = self.replay(app, repeat.as_ref()).await? {
            return Ok(Sent::Kept(reply));
        }
        match self.composed(app, request, 0).await? {
            Composed::Checked(report) => Ok(Sent::Checked(report)),
            Composed::Message(message) => {
                self.require_approval(caller, &message.spec, message.due_at > message.created_at).await?;
                self.keep(message, repeat).await.map(Sent::Kept)
            }
        }
    }
}

/// A message without its place in any order.
pub(super) struct MessageDraft {
    pub(super) spec: MessageSpec,
    pub(super) due_at: Timestamp,
    pub(super) exact: bool,
}

/// A checked request.
pub(super) enum Composed {
    /// A dry run, of which nothing is stored.
    Checked(DryRun),
    /// A message that may be stored.
    Message(Message),
}

impl Service {
    /// Checks a request and that the queue has room for it. `before` messages are about to be stored first.
    pub(super) async fn composed(
        &self,
        app: AppId,
        request: MessageRequest,
        before: u64,
    ) -> ServiceResult<Composed> {
        let (now, dry_run) = (self.now(), request.dry_run);
        let draft = request.draft(now)?;
        let providers = self.check_draft(app, &draft, now).await?;
        if dry_run {
            // It has no place in any order.
            let message = self.message(app, MessageId::from_raw(self.next_id(now)), draft, now);
            let report = self.count(&message, &providers).await.map_err(target_problem)?;
            return Ok(Composed::Checked(report));
        }
        let message = self.numbered(app, draft, now).await?;
        // Last, because it may read the store, and malformed requests are reported first.
        self.refuse_when_full(app, &message.spec.target, before).await?;
        Ok(Composed::Message(message))
    }

    /// Checks a draft against each push service that it may reach, and returns these push services.
    pub(super) async fn check_draft(
        &self,
        app: AppId,
        draft: &MessageDraft,
        now: Timestamp,
    ) -> ServiceResult<Vec<ProviderKind>> {
        let providers = self.check_content(app, &draft.spec).await?;
        check_order(&draft.spec, draft.due_at > now)?;
        Ok(providers)
    }

    /// Makes the message of a draft, which gets its place in every order.
    pub(super) async fn numbered(
        &self,
        app: AppId,
        mut draft: MessageDraft,
        now: Timestamp,
    ) -> ServiceResult<Message> {
        let id = self.number(app, &mut draft.spec, now).await?;
        Ok(self.message(app, id, draft, now))
    }

    fn message(&self, app: AppId, id: MessageId, draft: MessageDraft, now: Timestamp) -> Message {
        let MessageDraft { spec, due_at, exact } = draft;
        // Only messages for later that need not be exact are spread; a message for now is due now.
        let spread = if exact || due_at <= now { Duration::ZERO } else { self.settings.limits.start_spread };
        let due_at = off_the_minute(due_at, spec.target.class(), spread, id.raw());
        Message { id, app, spec, created_at: now, due_at, occurrence: None }
    }
}

impl Serve<ShowMessage> for Service {
    async fn serve(&self, caller: Caller, id: MessageId, (): ()) -> ServiceResult<MessageView> {
        caller.allow::<ShowMessage>()?;
        Ok(self.store.message(caller.app(), id).await?.into())
    }
}

impl Service {
    /// Refuses messages that would only lengthen a full queue, before they cost a transaction.
    pub(super) async fn refuse_when_full(
        &self,
        app: AppId,
        target: &Target,
        before: u64,
    ) -> ServiceResult<()> {
        // A check in memory, before anything is counted in the store.
        if !self.pipeline.has_room(app, before) {
            let detail = "this app has as many waiting deliveries as are allowed; nothing was kept";
            return self.refuse_as_full(detail.to_owned(), None);
        }
        match self.full_lane_before(app, target).await? {
            Some(FullLane { provider, chunks, detail }) => {
                let why = format!(
                    "{chunks} chunks wait for {provider}, as many as may: {detail}; nothing was kept"
                );
                self.refuse_as_full(why, Some(format!("see the credential for {provider} of app {app}")))
            }
            None => Ok(()),
        }
    }

    fn refuse_as_full(&self, detail: String, hint: Option<String>) -> ServiceResult<()> {
        ServiceCounters::add(&self.counters.messages_refused, 1);
        let problem = Problem::new(ErrorCode::QueueFull, detail);
        Err(Problem { hint: hint.map(Into::into), ..problem })
    }

    /// Finds a full lane that would block a message to named devices. Audiences are expanded when there is room, and delay no messages at
    /// other push services.
    async fn full_lane_before(&self, app: AppId, target: &Target) -> ServiceResult<Option<FullLane>> {
        let mut lanes = self.pipeline.full_lanes(app);
        if lanes.is_empty() || !target.is_direct() {
            return Ok(None);
        }
        match target {
            Target::Token(token) => lanes.retain(|lane| lane.provider == token.provider),
            _ => {
                let counts = self.store.count_audience(app, target).await;
                let counts = counts.map_err(|error| target_problem(error.into()))?;
                lanes.retain(|lane| counts.iter().any(|(kind, count)| *kind == lane.provider && *count > 0));
            }
        }
        Ok(lanes.into_iter().next())
    }

    async fn keep(&self, message: Message, repeat: Option<Repeat>) -> ServiceResult<Kept<MessageAccepted>> {
        let none = || Err(Problem::new(ErrorCode::Internal, "the store gave no answer"));
        self.keep_all(vec![(message, repeat)]).await.pop().unwrap_or_else(none)
    }

    /// Stores messages in as few commits as the store allows. Reply i belongs to message i.
    pub(super) async fn keep_all(
        &self,
        messages: Vec<(Message, Option<Repeat>)>,
    ) -> Vec<ServiceResult<Kept<MessageAccepted>>> {
        let told = messages.iter().map(|(message, _)| reply_to(message));
        let told: Vec<_> = told.collect();
        // The reply is fixed before the commit, because it is kept with the message for repeats.
        let new = messages.into_iter().zip(&told).map(|((message, repeat), reply)| {
            let idempotency = repeat.map(|repeat| to_keep(repeat, reply)).transpose()?;
            Ok(NewMessage { message, idempotency, at_once: None })
        });
        let new = match new.collect::<ServiceResult<Vec<_>>>() {
            Ok(new) => new,
            // Nothing is kept: a message whose reply is not kept would be sent again by a repeat.
            Err(problem) => return told.iter().map(|_| Err(problem.clone())).collect(),
        };
        let places = places(&self.pipeline, &new).await;
        let noted = self.hand_over(new, places).await.into_iter().zip(told);
        let noted = noted.map(|(answer, reply)| match answer {
            Ok(Idempotent::Done(())) => {
                ServiceCounters::add(&self.counters.messages_accepted, 1);
                trace::accepted(reply.id);
                Ok(Kept { reply, replayed: false })
            }
            Ok(Idempotent::Replayed(reply)) => self.replayed(reply),
            Ok(Idempotent::KeyReused) => Err(key_reused()),
            Err(error) => Err(target_problem(error.into())),
        });
        noted.collect()
    }

    /// Stores messages and hands them over to the pipeline. Those with places are stored in a task of its own: a caller that goes away
    /// meanwhile leaves no leased chunk behind that nobody sends. The places bound the number of these tasks.
    async fn hand_over(
        &self,
        messages: Vec<NewMessage>,
        places: Vec<Option<AtOncePlace>>,
    ) -> Vec<Result<Idempotent<()>, StoreError>> {
        let (store, pipeline, count) = (Arc::clone(&self.store), Arc::clone(&self.pipeline), messages.len());
        let is_at_once = places.iter().any(Option::is_some);
        let kept = async move { keep_and_hand_over(&*store, &pipeline, messages, places).await };
        if !is_at_once {
            return kept.await;
        }
        let lost = |_| vec![Err(StoreError::Damaged("accepting a message panicked".to_owned())); count];
        tokio::spawn(kept.in_current_span()).await.unwrap_or_else(lost)
    }
}

async fn keep_and_hand_over(
    store: &dyn Store,
    pipeline: &Pipeline,
    mut messages: Vec<NewMessage>,
    places: Vec<Option<AtOncePlace>>,
) -> Vec<Result<Idempotent<()>, StoreError>> {
    // Callers that wait are counted until they are answered; the starter gives way to them.
    let guard = pipeline.accepting();
    let acceptance = pipeline.accept();
    for (new, place) in messages.iter_mut().zip(&places) {
        new.at_once = place.as_ref().and_then(|_| acceptance.terms(new.message.app));
    }
    let due: Vec<_> = messages.iter().map(|new| (new.message.app, due_now(&new.message))).collect();
    let answers = store.accept(messages).await.into_iter().zip(due).zip(places);
    let noted = answers.map(|((answer, (app, due_at)), place)| {
        answer.map(|answer| {
            answer.map(|stored| match (stored, due_at) {
                (Accepted::Leased(chunks), _) => acceptance.leased(chunks, place),
                // It joins the backlog and is begun from there.
                (Accepted::Waits, Some(due_at)) => guard.accepted(app, due_at),
                // A later one is left to the scheduler.
                (Accepted::Waits, None) => pipeline.wake(),
            })
        })
    });
    noted.collect()
}

/// Takes a place for each message that is due and names its devices, as far as there are places.
async fn places(pipeline: &Pipeline, messages: &[NewMessage]) -> Vec<Option<AtOncePlace>> {
    let mut places = Vec::with_capacity(messages.len());
    for NewMessage { message, .. } in messages {
        let is_single = due_now(message).is_some() && message.spec.target.is_direct();
        // A list waits for its first place alone.
        let may_have_one = is_single && (places.is_empty() || places.last().is_some_and(Option::is_some));
        places.push(if may_have_one { pipeline.place_at_once(message.app).await } else { None });
    }
    places
}

/// Returns the due time of a message that is due when it is accepted.
fn due_now(message: &Message) -> Option<Timestamp> {
    (message.due_at <= message.created_at).then_some(message.due_at)
}

fn reply_to(message: &Message) -> MessageAccepted {
    let state = if message.due_at > message.created_at { "scheduled" } else { "running" };
    MessageAccepted { id: message.id, campaign: message.id.into(), state: state.into() }
}

/// Attributes a target that does not exist to the field `target` of the request, and not to the address.
pub(super) fn target_problem(problem: Problem) -> Problem {
    if problem.code == ErrorCode::NotFound {
        return Problem { field: Some("target".into()), ..problem };
    }
    problem
}

#[cfg(test)]
mod tests;
