//! The table of operations: what is not in it cannot be asked.

use stentor_core::app::Scope::{Admin, Register, Send};
use stentor_core::device::ProviderKind;
use stentor_core::id::{AppId, CampaignId, DeviceId, KeyId, MessageId, ScheduleId};
use stentor_core::name::{ExternalId, GroupName, ServiceName, TopicName};

use super::ErrorCode::{
    AddressRefused, Conflict, CredentialUnusable, IdempotencyKeyReused, LimitReached, PreconditionFailed,
    QueueFull,
};
use super::accounts::{NewServiceAccount, ServiceAccountList, ServiceAccountRequest};
use super::apps::{AppList, AppRequest, AppView, KeyList, KeyRequest, NewKey};
use super::audit::{AuditList, AuditQuery};
use super::bulk::{
    DeviceBatch, MessageBatch, RegisterResults, SendResults, SubscribeResults, SubscriptionBatch,
};
use super::campaigns::{CampaignList, LedgerView};
use super::credentials::{CredentialCheck, CredentialList, CredentialRequest};
use super::description::{OperationShape, describe as describe_one};
use super::devices::{
    Deliveries, DeliveryList, DeliveryQuery, DeviceChange, DeviceList, DeviceQuery, DeviceRequest,
    DeviceTopics, DeviceView, History, RegisteredView,
};
use super::groups::{GroupList, GroupView, MemberList, MembersRequest};
use super::import::{ImportRequest, ImportResult};
use super::messages::{MessageList, MessageRequest, MessageView, Sent};
use super::nodes::NodeList;
use super::schedules::{ScheduleList, ScheduleRequest, ScheduleView};
use super::services::{PublishedServiceView, ServiceList, ServiceQuery, ServiceRequest};
use super::shape::Shapes;
use super::status::StatusView;
use super::topics::{SubscriptionChangeView, SubscriptionRequest, TopicList, TopicView};
use super::upstream::{DeadLetterList, UpstreamChangeView, UpstreamIds, UpstreamList};
use super::users::{UserList, UserView};
use super::webhooks::{NewUpstreamWebhook, UpstreamWebhookRequest, UpstreamWebhookView};
use super::{
    Access, After, Before, Caller, Conditional, ErrorCode, Facts, Identity, Kept, Operation, Origin,
    Repeatable,
};

const ROOT: Access = Access::Root;
const ANY_KEY: Access = Access::AnyKey;
const ADMIN: Access = Access::Scopes(&[Admin]);
const SEND: Access = Access::Scopes(&[Send]);
const REGISTER: Access = Access::Scopes(&[Register]);
const READ: Access = Access::Scopes(&[Register, Send]);

const NEVER: &[ErrorCode] = &[];
/// What a subscription, a membership, a service or a service account may run into: more of them than one device, person or app may have.
const MORE: &[ErrorCode] = &[LimitReached];
/// What new facts about a device may run into: a token that another device holds, too many topics.
const REPLACEMENT: &[ErrorCode] = &[Conflict, LimitReached, PreconditionFailed];
/// What a change of a thing may run into that may have a condition.
const GUARDED: &[ErrorCode] = &[PreconditionFailed];
/// The same, where the state of things may forbid it too.
const GUARDED_STATE: &[ErrorCode] = &[Conflict, PreconditionFailed];
const STATE: &[ErrorCode] = &[Conflict];
/// What a message may run into.
const SENDING: &[ErrorCode] = &[Conflict, LimitReached, QueueFull, IdempotencyKeyReused];
/// What a schedule of messages may run into: its messages queue later.
const SCHEDULING: &[ErrorCode] = &[Conflict, LimitReached, IdempotencyKeyReused];
/// What many messages together may run into: all else is told of each.
const BATCH: &[ErrorCode] = &[IdempotencyKeyReused];

/// What a credential may run into: another app's key of Web Push among it.
const CREDENTIAL: &[ErrorCode] = &[AddressRefused, Conflict, CredentialUnusable];

/// What an address may run into.
const ADDRESS: &[ErrorCode] = &[AddressRefused];

/// Who asks for a change that leaves an entry in the audit trail.
type KeyAuthor = (Identity, Origin);
/// The same, speaking for an app.
type AppAuthor = (Caller, Origin);

macro_rules! subject {
    () => {
        ()
    };
    ($one:ty) => {
        $one
    };
    ($one:ty, $other:ty) => {
        ($one, $other)
    };
}

/// One line an operation: name, type, who asks ( what it is about ; what is asked ) what is replied, access, errors.
///
/// The dollar stands at the beginning so that a macro inside can have variables of its own.
macro_rules! operations {
    (($d:tt) $($(#[doc = $about:literal])+ $name:literal $operation:ident: $by:ty
        { $($part:ident: $kind:ty),* ; $request:ty } -> $reply:ty, $access:ident, $errors:expr;)*) => {
        $(
            $(#[doc = $about])+
            #[derive(Debug, Clone, Copy)]
            pub struct $operation;

            impl Operation for $operation {
                type By = $by;
                type Subject = subject!($($kind),*);
                type Request = $request;
                type Reply = $reply;
                const FACTS: Facts = Facts {
                    name: $name,
                    type_name: stringify!($operation),
                    about: concat!($($about, "\n"),+),
                    subject: &[$(stringify!($part)),*],
                    access: $access,
                    repeatable: is_repeatable($errors),
                    errors: $errors,
                };
            }
        )*

        /// Hands the types of all operations to a macro.
        macro_rules! for_each_operation {
            ($d macro_name:ident) => { $d macro_name! { $($operation)* } };
        }
        pub(crate) use for_each_operation;

        /// Describes every operation.
        pub(super) fn describe(shapes: &mut Shapes) -> Vec<OperationShape> {
            vec![$(describe_one::<$operation>(shapes)),*]
        }

        /// Every operation, in the order of the table.
        pub const OPERATIONS: &[Facts] = &[$(<$operation as Operation>::FACTS),*];
    };
}

/// What may be repeated is what may refuse a key that was used for something else.
const fn is_repeatable(errors: &[ErrorCode]) -> bool {
    let mut at = 0;
    while at < errors.len() {
        if matches!(errors[at], IdempotencyKeyReused) {
            return true;
        }
        at += 1;
    }
    false
}

operations! { ($)
    /// Makes an app (root key).
    "apps.create_app" CreateApp: KeyAuthor { ; AppRequest } -> AppView, ROOT, NEVER;
    /// Lists all apps (root key), or the one that the key belongs to.
    "apps.list_apps" ListApps: Identity { ; () } -> AppList, ANY_KEY, NEVER;
    /// Shows an app.
    "apps.show_app" ShowApp: Identity { app: AppId; () } -> AppView, ANY_KEY, NEVER;
    /// Removes an app with all that belongs to it (root key).
    "apps.delete_app" DeleteApp: KeyAuthor { app: AppId; Conditional<()> } -> (), ROOT, GUARDED;
    /// Makes a key; its secret is shown this once.
    "apps.create_key" CreateKey: KeyAuthor { app: AppId; KeyRequest } -> NewKey, ADMIN, NEVER;
    /// Lists an app's keys.
    "apps.list_keys" ListKeys: Identity { app: AppId; () } -> KeyList, ADMIN, NEVER;
    /// Removes a key.
    "apps.delete_key" DeleteKey: KeyAuthor { app: AppId, key: KeyId; () } -> (), ADMIN, NEVER;

    /// Makes a service account: its file, shown this once, has the private key with which it signs for itself.
    "apps.create_service_account" CreateServiceAccount: KeyAuthor { app: AppId; ServiceAccountRequest } -> NewServiceAccount, ADMIN, MORE;
    /// Lists an app's service accounts.
    "apps.list_service_accounts" ListServiceAccounts: Identity { app: AppId; () } -> ServiceAccountList, ADMIN, NEVER;
    /// Removes a service account; its access tokens are refused at once.
    "apps.delete_service_account" DeleteServiceAccount: KeyAuthor { app: AppId, account: KeyId; () } -> (), ADMIN, NEVER;

    /// Lists an app's credentials, without their secrets.
    "apps.list_credentials" ListCredentials: Identity { app: AppId; () } -> CredentialList, ADMIN, NEVER;
    /// Puts the credential for a push service.
    "apps.put_credential" PutCredential: KeyAuthor { app: AppId, provider: ProviderKind; CredentialRequest } -> (), ADMIN, CREDENTIAL;
    /// Tries the credential for a push service without sending: gets an access token where there is one, and connects.
    "apps.check_credential" CheckCredential: Identity { app: AppId, provider: ProviderKind; () } -> CredentialCheck, ADMIN, NEVER;
    /// Removes the credential for a push service; what is queued for it waits.
    "apps.delete_credential" DeleteCredential: KeyAuthor { app: AppId, provider: ProviderKind; () } -> (), ADMIN, NEVER;

    /// Puts the webhook that messages of devices are posted to, in the place of one that was there; a secret that is made is shown
    /// this once.
    "apps.put_upstream_webhook" PutUpstreamWebhook: KeyAuthor { app: AppId; UpstreamWebhookRequest } -> NewUpstreamWebhook, ADMIN, ADDRESS;
    /// Shows an app's webhook, without its secret.
    "apps.show_upstream_webhook" ShowUpstreamWebhook: Identity { app: AppId; () } -> UpstreamWebhookView, ADMIN, NEVER;
    /// Removes an app's webhook; what devices send waits for somebody else to take it over.
    "apps.delete_upstream_webhook" DeleteUpstreamWebhook: KeyAuthor { app: AppId; () } -> (), ADMIN, NEVER;

    /// Registers a device; registering it again changes nothing.
    "devices.register" RegisterDevice: Caller { ; DeviceRequest } -> RegisteredView, REGISTER, MORE;
    /// Lists devices in order of id.
    "devices.list" ListDevices: Caller { ; DeviceQuery } -> DeviceList, READ, NEVER;
    /// Shows a device.
    "devices.show" ShowDevice: Caller { device: DeviceId; () } -> DeviceView, READ, NEVER;
    /// Replaces what is known of a device; a new token takes the place of the old.
    "devices.replace" ReplaceDevice: Caller { device: DeviceId; Conditional<DeviceRequest> } -> DeviceView, REGISTER, REPLACEMENT;
    /// Changes some fields of a device.
    "devices.change" ChangeDevice: Caller { device: DeviceId; Conditional<DeviceChange> } -> DeviceView, REGISTER, GUARDED_STATE;
    /// Removes a device with its subscriptions and memberships.
    "devices.remove" RemoveDevice: Caller { device: DeviceId; Conditional<()> } -> (), REGISTER, GUARDED;
    /// Lists a device's topics.
    "devices.topics" ListDeviceTopics: Caller { device: DeviceId; () } -> DeviceTopics, READ, NEVER;
    /// Subscribes a device to a topic.
    "devices.subscribe" SubscribeDevice: Caller { device: DeviceId, topic: TopicName; () } -> (), REGISTER, MORE;
    /// Takes a device's subscription away.
    "devices.unsubscribe" UnsubscribeDevice: Caller { device: DeviceId, topic: TopicName; () } -> (), REGISTER, NEVER;
    /// Returns every attempt to reach a device, newest message first.
    "devices.history" ShowHistory: Caller { device: DeviceId; Before } -> History, READ, NEVER;
    /// Registers up to 1,000 devices, with a result for each in the same order: one that is refused keeps no other from being
    /// registered. Registering them again changes nothing.
    "devices.register_many" RegisterDevices: Caller { ; DeviceBatch } -> RegisterResults, REGISTER, NEVER;
    /// Registers devices by the line: NDJSON, or CSV with a header (tags and topics separated by `;`). The body is
    /// streamed and may be of any length, a line at most 16 KiB. Good lines stay; importing the same again is harmless.
    "devices.import" ImportDevices: Caller { ; ImportRequest } -> ImportResult, REGISTER, NEVER;

    /// Lists people by external id, without devices.
    "users.list" ListUsers: Caller { ; After } -> UserList, READ, NEVER;
    /// Makes a person known; harmless when known.
    "users.put" PutUser: Caller { external_id: ExternalId; Conditional<()> } -> UserView, REGISTER, GUARDED;
    /// Shows a person with devices.
    "users.show" ShowUser: Caller { external_id: ExternalId; () } -> UserView, READ, NEVER;
    /// Forgets a person; the devices stay, without owner.
    "users.remove" RemoveUser: Caller { external_id: ExternalId; Conditional<()> } -> (), REGISTER, GUARDED;

    /// Lists groups by name.
    "groups.list" ListGroups: Caller { ; After } -> GroupList, READ, NEVER;
    /// Makes a group; harmless when it exists.
    "groups.put" PutGroup: Caller { group: GroupName; Conditional<()> } -> GroupView, REGISTER, GUARDED;
    /// Shows a group.
    "groups.show" ShowGroup: Caller { group: GroupName; () } -> GroupView, READ, NEVER;
    /// Removes a group; its members stay.
    "groups.remove" RemoveGroup: Caller { group: GroupName; Conditional<()> } -> (), REGISTER, GUARDED;
    /// Lists a group's members.
    "groups.members" ListMembers: Caller { group: GroupName; After } -> MemberList, READ, NEVER;
    /// Adds members; unknown people are made known, unknown devices are named.
    "groups.add" AddMembers: Caller { group: GroupName; MembersRequest } -> SubscriptionChangeView, REGISTER, MORE;
    /// Takes members out.
    "groups.take_out" RemoveMembers: Caller { group: GroupName; MembersRequest } -> SubscriptionChangeView, REGISTER, NEVER;

    /// Lists topics by name.
    "topics.list" ListTopics: Caller { ; After } -> TopicList, READ, NEVER;
    /// Shows a topic.
    "topics.show" ShowTopic: Caller { topic: TopicName; () } -> TopicView, READ, NEVER;
    /// Removes a topic with its subscriptions.
    "topics.remove" RemoveTopic: Caller { topic: TopicName; Conditional<()> } -> (), REGISTER, GUARDED;
    /// Subscribes devices; the topic exists from then on.
    "topics.subscribe" Subscribe: Caller { topic: TopicName; SubscriptionRequest } -> SubscriptionChangeView, REGISTER, MORE;
    /// Makes up to 1,000 subscriptions of any devices to any topics, with a result for each in the same order: one that is
    /// refused keeps no other from being made. Making them again changes nothing.
    "topics.subscribe_many" SubscribeMany: Caller { ; SubscriptionBatch } -> SubscribeResults, REGISTER, NEVER;
    /// Takes subscriptions away.
    "topics.unsubscribe" Unsubscribe: Caller { topic: TopicName; SubscriptionRequest } -> SubscriptionChangeView, REGISTER, NEVER;

    /// Sends a message; once accepted, it is on disk.
    "messages.send" SendMessage: Caller { ; Repeatable<MessageRequest> } -> Sent, SEND, SENDING;
    /// Sends up to 1,000 messages, with a result for each in the same order: one that is refused keeps no other from being sent.
    /// One idempotency key is for all of them. A refusal is kept as a result as well: what is to be sent all the same goes in a
    /// new request with a new key.
    "messages.send_many" SendMessages: Caller { ; Repeatable<MessageBatch> } -> Kept<SendResults>, SEND, BATCH;
    /// Lists messages, newest first.
    "messages.list" ListMessages: Caller { ; Before } -> MessageList, SEND, NEVER;
    /// Shows a message as it was asked for.
    "messages.show" ShowMessage: Caller { message: MessageId; () } -> MessageView, SEND, NEVER;
    /// Returns the books of a message's campaign.
    "messages.ledger" ShowMessageLedger: Caller { message: MessageId; () } -> LedgerView, SEND, NEVER;
    /// Lists the deliveries of a message, each with its last attempt, all or those in a state: who did not get it, and why.
    "messages.all_deliveries" ListMessageDeliveries: Caller { message: MessageId; DeliveryQuery } -> DeliveryList, SEND, NEVER;
    /// Returns every attempt of one message at one device.
    "messages.deliveries" ListDeliveries: Caller { message: MessageId, device: DeviceId; () } -> Deliveries, READ, NEVER;

    /// Lists campaigns, newest first.
    "campaigns.list" ListCampaigns: Caller { ; Before } -> CampaignList, SEND, NEVER;
    /// Returns the books of a campaign; the id of its message does as well.
    "campaigns.show" ShowCampaign: Caller { campaign: CampaignId; () } -> LedgerView, SEND, NEVER;
    /// Ends a campaign for good: what is queued is canceled, what is in flight settles.
    "campaigns.cancel" CancelCampaign: AppAuthor { campaign: CampaignId; () } -> LedgerView, SEND, STATE;
    /// Holds a campaign; its time to live runs on.
    "campaigns.pause" PauseCampaign: AppAuthor { campaign: CampaignId; () } -> LedgerView, SEND, STATE;
    /// Lets a paused campaign go on.
    "campaigns.resume" ResumeCampaign: AppAuthor { campaign: CampaignId; () } -> LedgerView, SEND, STATE;

    /// Makes a schedule.
    "schedules.create" CreateSchedule: AppAuthor { ; Repeatable<ScheduleRequest> } -> Kept<ScheduleView>, SEND, SCHEDULING;
    /// Lists schedules in order of id.
    "schedules.list" ListSchedules: Caller { ; After } -> ScheduleList, SEND, NEVER;
    /// Shows a schedule with its next five occurrences.
    "schedules.show" ShowSchedule: Caller { schedule: ScheduleId; () } -> ScheduleView, SEND, NEVER;
    /// Ends a schedule and removes it, also one that cannot be read; what it has sent stays.
    "schedules.remove" RemoveSchedule: AppAuthor { schedule: ScheduleId; Conditional<()> } -> (), SEND, GUARDED;
    /// Ends a schedule; what it has sent stays. One that cannot be read is deleted, and nothing of it can be shown.
    "schedules.cancel" CancelSchedule: AppAuthor { schedule: ScheduleId; () } -> Option<ScheduleView>, SEND, STATE;
    /// Holds a schedule; occurrences of that time are not made up for.
    "schedules.pause" PauseSchedule: AppAuthor { schedule: ScheduleId; () } -> ScheduleView, SEND, STATE;
    /// Lets a paused schedule go on with its next occurrence.
    "schedules.resume" ResumeSchedule: AppAuthor { schedule: ScheduleId; () } -> ScheduleView, SEND, STATE;

    /// Publishes a service, or says anew that it is there: it is found until its time is over.
    "services.publish" PublishService: Caller { service: ServiceName; ServiceRequest } -> PublishedServiceView, REGISTER, MORE;
    /// Lists the services of the app by name, of one kind or of all.
    "services.list" ListServices: Caller { ; ServiceQuery } -> ServiceList, READ, NEVER;
    /// Shows a service.
    "services.show" ShowService: Caller { service: ServiceName; () } -> PublishedServiceView, READ, NEVER;
    /// Removes a service; it is not found from then on.
    "services.remove" RemoveService: Caller { service: ServiceName; () } -> (), REGISTER, NEVER;

    /// Lists what devices have sent to the app and nobody has taken over, oldest first.
    "upstream.list" ListUpstream: Caller { ; After } -> UpstreamList, SEND, NEVER;
    /// Takes messages of devices over: they are not handed out again. What was taken over before is no news.
    "upstream.acknowledge" AcknowledgeUpstream: Caller { ; UpstreamIds } -> UpstreamChangeView, SEND, NEVER;
    /// Lists messages of devices that nobody took over in time, with the reasons, oldest first.
    "upstream.dead_letters" ListDeadLetters: Caller { ; After } -> DeadLetterList, SEND, NEVER;
    /// Lets dead letters wait again, for four weeks at most.
    "upstream.retry_dead_letters" RetryDeadLetters: Caller { ; UpstreamIds } -> UpstreamChangeView, SEND, NEVER;

    /// Lists who changed what, newest first (root key).
    "audit.list" ListAudit: (Identity, Option<AppId>) { ; AuditQuery } -> AuditList, ROOT, NEVER;

    /// Returns what every part is doing (root key).
    "status.status" ShowStatus: Identity { ; () } -> StatusView, ROOT, NEVER;
    /// Lists the servers that use the store (root key).
    "nodes.list" ListNodes: Identity { ; () } -> NodeList, ROOT, NEVER;
}
