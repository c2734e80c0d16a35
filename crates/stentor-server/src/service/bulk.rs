//! Bulk requests: each item is parsed, checked and stored separately, and an invalid item affects no other.

use futures_util::stream::{StreamExt as _, iter};
use serde::de::DeserializeOwned;
use serde_json::Value;
use stentor_core::device::Registration;
use stentor_core::id::{AppId, DeviceId};
use stentor_core::name::{IdempotencyKey, TopicName};
use stentor_core::ports::store::{Idempotent, Registered, StoreError, SubscriptionAction};

use super::devices::DeviceCounts;
use super::messages::Composed;
use super::repeat::{key_reused, to_keep};
use super::topics::check_count;
use super::{Caller, ErrorCode, Problem, Service, ServiceResult};
use crate::contract::bulk::{
    DeviceBatch, MessageBatch, RegisterResult, RegisterResults, SendResult, SendResults, SubscribeResult,
    SubscribeResults, Subscription, SubscriptionBatch, usual_form,
};
use crate::contract::devices::{DeviceRequest, RegisteredView};
use crate::contract::messages::MessageRequest;
use crate::contract::table::{RegisterDevices, SendMessages, SubscribeMany};
use crate::contract::{Kept, Repeat, Repeatable, Serve, hash};
use crate::decode::decode_value;

/// Messages stored at once. Each check for room in the queue includes the messages before it.
const MESSAGES_AT_ONCE: usize = 128;
/// Subscriptions sent to the store concurrently, which commits them together.
const SUBSCRIPTIONS_AT_ONCE: usize = 64;

impl Serve<RegisterDevices> for Service {
    async fn serve(
        &self,
        caller: Caller,
        (): (),
        DeviceBatch { devices }: DeviceBatch,
    ) -> ServiceResult<RegisterResults> {
        caller.allow::<RegisterDevices>()?;
        check_count("devices", devices.len())?;
        let read: Vec<_> = devices.into_iter().map(registration).collect();
        let good: Vec<_> = read.iter().filter_map(|one| one.as_ref().ok().cloned()).collect();
        self.open_gateway_for(caller, &good).await?;
        self.respell(caller.app(), &good).await?;
        let mut registered = self.register_each(caller.app(), &good).await?.into_iter();
        let results = read.into_iter().map(|one| {
            // The store replies to the valid items in order, so each of them takes the next reply.
            let answer = one.and_then(|_| registered.next().unwrap_or_else(no_answer));
            match answer {
                Ok(Registered { device: id, created, .. }) => {
                    RegisterResult { registered: Some(RegisteredView { id, created }), refused: None }
                }
                Err(problem) => RegisterResult { registered: None, refused: Some(problem.into()) },
            }
        });
        Ok(RegisterResults { results: results.collect() })
    }
}

impl Serve<SubscribeMany> for Service {
    async fn serve(
        &self,
        caller: Caller,
        (): (),
        SubscriptionBatch { subscriptions }: SubscriptionBatch,
    ) -> ServiceResult<SubscribeResults> {
        caller.allow::<SubscribeMany>()?;
        check_count("subscriptions", subscriptions.len())?;
        let made = iter(subscriptions).map(|given| self.subscribe_one(caller.app(), given));
        let results = made.buffered(SUBSCRIPTIONS_AT_ONCE).map(|answer| match answer {
            Ok(changed) => SubscribeResult { changed: Some(changed), refused: None },
            Err(problem) => SubscribeResult { changed: None, refused: Some(problem.into()) },
        });
        Ok(SubscribeResults { results: results.collect().await })
    }
}

impl Serve<SendMessages> for Service {
    async fn serve(
        &self,
        caller: Caller,
        (): (),
        Repeatable { request, repeat }: Repeatable<MessageBatch>,
    ) -> ServiceResult<Kept<SendResults>> {
        caller.allow::<SendMessages>()?;
        let app = caller.app();
        if let Some(reply) = self.replay(app, repeat.as_ref()).await? {
            return Ok(reply);
        }
        check_count("messages", request.messages.len())?;
        self.refuse_unapproved_batch(caller)?;
        let mut answers = Vec::with_capacity(request.messages.len());
        let requested: Vec<_> = request.messages.into_iter().enumerate().collect();
        // Each portion is stored before the next is checked, so that the room in the queue is up to date.
        for portion in requested.chunks(MESSAGES_AT_ONCE) {
            answers.extend(self.send_portion(app, portion, repeat.as_ref()).await);
        }
        // If the server failed at some part, the results are not kept: a repeated request continues with the rest.
        let is_settled = answers.iter().all(|answer| !answer.as_ref().is_err_and(is_the_servers));
        let results = answers.into_iter().map(|answer| answer.unwrap_or_else(refused)).collect();
        let reply = SendResults { results };
        match repeat.filter(|_| is_settled) {
            Some(repeat) => self.keep_results(app, repeat, reply).await,
            None => Ok(Kept { reply, replayed: false }),
        }
    }
}

impl Service {
    /// Registers devices. If the store refuses a batch, it is halved until the refused devices are found. An error that no device causes
    /// fails the whole request, or the rest if some devices are already registered.
    async fn register_each(
        &self,
        app: AppId,
        registrations: &[Registration],
    ) -> ServiceResult<Vec<ServiceResult<Registered>>> {
        let mut answers = Vec::with_capacity(registrations.len());
        let mut ranges: Vec<_> =
            Some(0..registrations.len()).into_iter().filter(|all| !all.is_empty()).collect();
        while let Some(range) = ranges.pop() {
            // The store may register fewer than given, because a transaction is limited; the rest follows.
            match self.store.register_some(app, &registrations[range.clone()], self.now()).await {
                Ok(registered) => {
                    self.count_devices(DeviceCounts::of(&registered));
                    let rest = range.start + registered.len()..range.end;
                    ranges.extend(Some(rest).filter(|rest| !rest.is_empty()));
                    answers.extend(registered.into_iter().map(Ok));
                }
                Err(error @ (StoreError::Conflict(_) | StoreError::LimitReached(_))) => {
                    if range.len() == 1 {
                        answers.push(Err(error.into()));
                        continue;
                    }
                    let middle = range.start + range.len() / 2;
                    // The first half is registered next, so that results are in the order of the devices.
                    ranges.extend([middle..range.end, range.start..middle]);
                }
                // If nothing was registered, the whole request can be repeated.
                Err(error) if answers.is_empty() => return Err(error.into()),
                Err(error) => {
                    let problem = Problem::from(error);
                    // Registered devices are reported. The rest gets the error, and a repeated request registers it.
                    answers.resize(registrations.len(), Err(problem));
                    return Ok(answers);
                }
            }
        }
        Ok(answers)
    }

    /// Creates one subscription. Returns true if it is new.
    async fn subscribe_one(&self, app: AppId, given: Value) -> ServiceResult<bool> {
        let Subscription { device, topic } = item(given)?;
        let unknown = || Problem::not_found("device").at("device");
        let device: DeviceId = device.parse().map_err(|_| unknown())?;
        let topic = TopicName::new(topic).map_err(|invalid| Problem::from(invalid).at("topic"))?;
        let change =
            self.store.change_subscriptions(app, &topic, &[device], SubscriptionAction::Subscribe).await?;
        if change.unknown() > 0 { Err(unknown()) } else { Ok(change.changed > 0) }
    }

    /// Checks messages one by one and stores the valid ones. Result i belongs to message i.
    async fn send_portion(
        &self,
        app: AppId,
        requested: &[(usize, Value)],
        repeat: Option<&Repeat>,
    ) -> Vec<ServiceResult<SendResult>> {
        let (mut answers, mut to_keep, mut places) =
            (Vec::with_capacity(requested.len()), Vec::new(), Vec::new());
        for (at, given) in requested {
            let answer = match self.compose_one(app, given, to_keep.len() as u64).await {
                Ok(Composed::Message(message)) => {
                    let own = repeat.map(|repeat| of_one(repeat, *at, given)).transpose();
                    own.map(|own| {
                        // A placeholder: the results of stored messages are filled in below.
                        places.push(answers.len());
                        to_keep.push((message, own));
                        SendResult { accepted: None, checked: None, refused: None }
                    })
                }
                Ok(Composed::Checked(report)) => {
                    Ok(SendResult { accepted: None, checked: Some(report), refused: None })
                }
                Err(problem) => Err(problem),
            };
            answers.push(answer);
        }
        for (place, result) in places.into_iter().zip(self.keep_all(to_keep).await) {
            answers[place] = result.map(|accepted| SendResult {
                accepted: Some(accepted.reply),
                checked: None,
                refused: None,
            });
        }
        answers
    }

    async fn compose_one(&self, app: AppId, given: &Value, before: u64) -> ServiceResult<Composed> {
        self.composed(app, item::<MessageRequest>(given.clone())?, before).await
    }

    /// Stores the results of a request for its repeats.
    async fn keep_results(
        &self,
        app: AppId,
        repeat: Repeat,
        reply: SendResults,
    ) -> ServiceResult<Kept<SendResults>> {
        let stored = to_keep(repeat, &reply)?;
        match self.store.keep_reply(app, &stored, self.now()).await? {
            Idempotent::Done(()) => Ok(Kept { reply, replayed: false }),
            Idempotent::Replayed(first) => self.replayed(first),
            Idempotent::KeyReused => Err(key_reused()),
        }
    }
}

fn registration(given: Value) -> ServiceResult<Registration> {
    Ok(item::<DeviceRequest>(given)?.checked()?)
}

/// Parses one item.
fn item<T: DeserializeOwned>(given: Value) -> ServiceResult<T> {
    match given {
        Value::Object(record) => decode_value(record),
        _ => Err(Problem::field("", "must be an object")),
    }
}

/// Returns the idempotency data of one of many messages. If a request fails after some messages were stored, its repeat continues with the
/// rest.
fn of_one(Repeat { key, .. }: &Repeat, at: usize, given: &Value) -> ServiceResult<Repeat> {
    let operation = <SendMessages as crate::contract::Operation>::FACTS.name;
    let digest = hash([operation.as_bytes(), key.as_str().as_bytes(), &at.to_le_bytes()]);
    let text: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    // The prefix and the hash separate these keys from those that callers choose.
    let usual = usual_form(given).map_err(Problem::unwritten)?;
    Repeat::of(IdempotencyKey::new(format!("bulk:{text}"))?, operation, &usual)
}

/// Returns true if an error is not caused by the request, so that a repeat may succeed.
fn is_the_servers(problem: &Problem) -> bool {
    matches!(problem.code, ErrorCode::Unavailable | ErrorCode::Internal)
}

fn refused(problem: Problem) -> SendResult {
    SendResult { accepted: None, checked: None, refused: Some(problem.into()) }
}

fn no_answer<T>() -> ServiceResult<T> {
    Err(Problem::new(ErrorCode::Internal, "the store gave no answer"))
}
