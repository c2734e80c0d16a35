//! The table of operations: the complete list of what the API offers.

use stentor_core::app::Scope::{Admin, Register, Send};
use stentor_core::device::ProviderKind;
use stentor_core::id::{AppId, CampaignId, DeviceId, KeyId, MessageId, ProposalId, ScheduleId};
use stentor_core::name::{ChannelId, ExternalId, GroupName, ServiceName, TopicName};

use super::ErrorCode::{
    AddressRefused, ApprovalRequired, Conflict, CredentialUnusable, IdempotencyKeyReused, LimitReached,
    PreconditionFailed, QueueFull,
};
use super::accounts::{NewServiceAccount, ServiceAccountList, ServiceAccountRequest};
use super::apps::{AppList, AppRequest, AppView, KeyList, KeyRequest, NewKey};
use super::audit::{AuditList, AuditQuery};
use super::bulk::{
    DeviceBatch, MessageBatch, RegisterResults, SendResults, SubscribeResults, SubscriptionBatch,
};
use super::campaigns::{CampaignList, LedgerView};
use super::channels::{ChannelList, ChannelRequest, ChannelView};
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
use super::proposals::{ProposalList, ProposalRequest, ProposalView};
use super::schedules::{ScheduleList, ScheduleRequest, ScheduleView};
use super::services::{PublishedServiceView, ServiceList, ServiceQuery, ServiceRequest};
use super::settings::SettingList;
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
const READ: Access = Access::Reading(&[Register, Send]);
const READ_SENT: Access = Access::Reading(&[Send]);

const NEVER: &[ErrorCode] = &[];
/// For new subscriptions, memberships, services and service accounts: a device, user or app may have too many of them.
const MORE: &[ErrorCode] = &[LimitReached];
/// For a replaced device: another device may hold the token, or the topics may be too many.
const REPLACEMENT: &[ErrorCode] = &[Conflict, LimitReached, PreconditionFailed];
/// For a change with an optional precondition.
const GUARDED: &[ErrorCode] = &[PreconditionFailed];
/// For a change with an optional precondition that the object's state may also forbid.
const GUARDED_STATE: &[ErrorCode] = &[Conflict, PreconditionFailed];
const STATE: &[ErrorCode] = &[Conflict];
/// For a new message.
const SENDING: &[ErrorCode] = &[ApprovalRequired, Conflict, LimitReached, QueueFull, IdempotencyKeyReused];
/// For a new schedule. Its messages enter the queue later.
const SCHEDULING: &[ErrorCode] = &[ApprovalRequired, Conflict, LimitReached, IdempotencyKeyReused];
/// For a batch of messages. All other errors are reported per message.
const BATCH: &[ErrorCode] = &[ApprovalRequired, IdempotencyKeyReused];

/// For a new proposal: the app may have no credential for it, or too many proposals.
const PROPOSING: &[ErrorCode] = &[Conflict, LimitReached];
/// For the approval of a proposal, which sends its message.
const APPROVING: &[ErrorCode] = &[ApprovalRequired, Conflict, QueueFull];

/// For a credential, including a Web Push key that another app uses.
const CREDENTIAL: &[ErrorCode] = &[AddressRefused, Conflict, CredentialUnusable];

/// For a new broadcast channel: the app may have no credential for them, the push service may refuse it, or there are too many.
const CHANNEL: &[ErrorCode] = &[Conflict, LimitReached];

/// For a request with an address.
const ADDRESS: &[ErrorCode] = &[AddressRefused];

/// Caller of a change that leaves an entry in the audit trail.
type KeyAuthor = (Identity, Origin);
/// Caller of such a change that acts for an app.
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

/// Defines one operation per line: name, type, caller ( subject ; request ) reply, access, errors.
///
/// The leading dollar lets the nested macro have variables of its own.
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

        /// Passes the types of all operations to a macro.
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

/// Returns true if the operation accepts an idempotency key: then it may fail because the key was used for another request.
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
    /// Creates an app (root key).
    "apps.create_app" CreateApp: KeyAuthor { ; AppRequest } -> AppView, ROOT, NEVER;
    /// Lists all apps (root key), or the app of the key.
    "apps.list_apps" ListApps: Identity { ; () } -> AppList, ANY_KEY, NEVER;
    /// Shows an app.
    "apps.show_app" ShowApp: Identity { app: AppId; () } -> AppView, ANY_KEY, NEVER;
    /// Deletes an app with all its data (root key).
    "apps.delete_app" DeleteApp: KeyAuthor { app: AppId; Conditional<()> } -> (), ROOT, GUARDED;
    /// Creates a key; its secret is shown only once.
    "apps.create_key" CreateKey: KeyAuthor { app: AppId; KeyRequest } -> NewKey, ADMIN, NEVER;
    /// Lists an app's keys.
    "apps.list_keys" ListKeys: Identity { app: AppId; () } -> KeyList, ADMIN, NEVER;
    /// Deletes a key.
    "apps.delete_key" DeleteKey: KeyAuthor { app: AppId, key: KeyId; () } -> (), ADMIN, NEVER;

    /// Creates a service account. Its key file, which is shown only once, contains the private key that signs its assertions.
    "apps.create_service_account" CreateServiceAccount: KeyAuthor { app: AppId; ServiceAccountRequest } -> NewServiceAccount, ADMIN, MORE;
    /// Lists an app's service accounts.
    "apps.list_service_accounts" ListServiceAccounts: Identity { app: AppId; () } -> ServiceAccountList, ADMIN, NEVER;
    /// Deletes a service account; its access tokens are refused at once.
    "apps.delete_service_account" DeleteServiceAccount: KeyAuthor { app: AppId, account: KeyId; () } -> (), ADMIN, NEVER;

    /// Lists an app's credentials, without their secrets.
    "apps.list_credentials" ListCredentials: Identity { app: AppId; () } -> CredentialList, ADMIN, NEVER;
    /// Sets the credential for a push service.
    "apps.put_credential" PutCredential: KeyAuthor { app: AppId, provider: ProviderKind; CredentialRequest } -> (), ADMIN, CREDENTIAL;
    /// Checks the credential for a push service without sending: gets an access token, if the push service uses one, and connects.
    "apps.check_credential" CheckCredential: Identity { app: AppId, provider: ProviderKind; () } -> CredentialCheck, ADMIN, NEVER;
    /// Deletes the credential for a push service; queued messages wait for a new one.
    "apps.delete_credential" DeleteCredential: KeyAuthor { app: AppId, provider: ProviderKind; () } -> (), ADMIN, NEVER;

    /// Sets or replaces the webhook to which upstream messages are posted. A generated secret is shown only once.
    "apps.put_upstream_webhook" PutUpstreamWebhook: KeyAuthor { app: AppId; UpstreamWebhookRequest } -> NewUpstreamWebhook, ADMIN, ADDRESS;
    /// Shows an app's webhook, without its secret.
    "apps.show_upstream_webhook" ShowUpstreamWebhook: Identity { app: AppId; () } -> UpstreamWebhookView, ADMIN, NEVER;
    /// Deletes an app's webhook; upstream messages wait for another consumer.
    "apps.delete_upstream_webhook" DeleteUpstreamWebhook: KeyAuthor { app: AppId; () } -> (), ADMIN, NEVER;

    /// Registers a device; registering it again changes nothing.
    "devices.register" RegisterDevice: Caller { ; DeviceRequest } -> RegisteredView, REGISTER, MORE;
    /// Lists devices in order of id.
    "devices.list" ListDevices: Caller { ; DeviceQuery } -> DeviceList, READ, NEVER;
    /// Shows a device.
    "devices.show" ShowDevice: Caller { device: DeviceId; () } -> DeviceView, READ, NEVER;
    /// Replaces the data of a device; a new token replaces the old one.
    "devices.replace" ReplaceDevice: Caller { device: DeviceId; Conditional<DeviceRequest> } -> DeviceView, REGISTER, REPLACEMENT;
    /// Changes some fields of a device.
    "devices.change" ChangeDevice: Caller { device: DeviceId; Conditional<DeviceChange> } -> DeviceView, REGISTER, GUARDED_STATE;
    /// Deletes a device with its subscriptions and memberships.
    "devices.remove" RemoveDevice: Caller { device: DeviceId; Conditional<()> } -> (), REGISTER, GUARDED;
    /// Lists a device's topics.
    "devices.topics" ListDeviceTopics: Caller { device: DeviceId; () } -> DeviceTopics, READ, NEVER;
    /// Subscribes a device to a topic.
    "devices.subscribe" SubscribeDevice: Caller { device: DeviceId, topic: TopicName; () } -> (), REGISTER, MORE;
    /// Unsubscribes a device from a topic.
    "devices.unsubscribe" UnsubscribeDevice: Caller { device: DeviceId, topic: TopicName; () } -> (), REGISTER, NEVER;
    /// Returns every attempt to reach a device, newest message first.
    "devices.history" ShowHistory: Caller { device: DeviceId; Before } -> History, READ, NEVER;
    /// Registers up to 1,000 devices, with one result per device in the same order. A refused device does not affect the others.
    /// Registering them again changes nothing.
    "devices.register_many" RegisterDevices: Caller { ; DeviceBatch } -> RegisterResults, REGISTER, NEVER;
    /// Registers devices from lines: NDJSON, or CSV with a header (tags and topics separated by `;`). The body is streamed and may have any
    /// length; a line may have at most 16 KiB. Valid lines are stored; importing them again is harmless.
    "devices.import" ImportDevices: Caller { ; ImportRequest } -> ImportResult, REGISTER, NEVER;

    /// Lists users by external id, without devices.
    "users.list" ListUsers: Caller { ; After } -> UserList, READ, NEVER;
    /// Creates a user; harmless if the user exists.
    "users.put" PutUser: Caller { external_id: ExternalId; Conditional<()> } -> UserView, REGISTER, GUARDED;
    /// Shows a user with devices.
    "users.show" ShowUser: Caller { external_id: ExternalId; () } -> UserView, READ, NEVER;
    /// Deletes a user. Their devices stay, without an owner.
    "users.remove" RemoveUser: Caller { external_id: ExternalId; Conditional<()> } -> (), REGISTER, GUARDED;

    /// Lists groups by name.
    "groups.list" ListGroups: Caller { ; After } -> GroupList, READ, NEVER;
    /// Creates a group; harmless if it exists.
    "groups.put" PutGroup: Caller { group: GroupName; Conditional<()> } -> GroupView, REGISTER, GUARDED;
    /// Shows a group.
    "groups.show" ShowGroup: Caller { group: GroupName; () } -> GroupView, READ, NEVER;
    /// Deletes a group; its members stay.
    "groups.remove" RemoveGroup: Caller { group: GroupName; Conditional<()> } -> (), REGISTER, GUARDED;
    /// Lists a group's members.
    "groups.members" ListMembers: Caller { group: GroupName; After } -> MemberList, READ, NEVER;
    /// Adds members to a group. Unknown users are created; unknown devices are listed in the reply.
    "groups.add" AddMembers: Caller { group: GroupName; MembersRequest } -> SubscriptionChangeView, REGISTER, MORE;
    /// Removes members from a group.
    "groups.take_out" RemoveMembers: Caller { group: GroupName; MembersRequest } -> SubscriptionChangeView, REGISTER, NEVER;

    /// Lists topics by name.
    "topics.list" ListTopics: Caller { ; After } -> TopicList, READ, NEVER;
    /// Shows a topic.
    "topics.show" ShowTopic: Caller { topic: TopicName; () } -> TopicView, READ, NEVER;
    /// Deletes a topic with its subscriptions.
    "topics.remove" RemoveTopic: Caller { topic: TopicName; Conditional<()> } -> (), REGISTER, GUARDED;
    /// Subscribes devices to a topic, which is created if it does not exist.
    "topics.subscribe" Subscribe: Caller { topic: TopicName; SubscriptionRequest } -> SubscriptionChangeView, REGISTER, MORE;
    /// Creates up to 1,000 subscriptions of any devices to any topics, with one result per subscription in the same order. A refused
    /// subscription does not affect the others. Creating them again changes nothing.
    "topics.subscribe_many" SubscribeMany: Caller { ; SubscriptionBatch } -> SubscribeResults, REGISTER, NEVER;
    /// Unsubscribes devices from a topic.
    "topics.unsubscribe" Unsubscribe: Caller { topic: TopicName; SubscriptionRequest } -> SubscriptionChangeView, REGISTER, NEVER;

    /// Sends a message. An accepted message is on disk.
    "messages.send" SendMessage: Caller { ; Repeatable<MessageRequest> } -> Sent, SEND, SENDING;
    /// Sends up to 1,000 messages, with one result per message in the same order. A refused message does not affect the others. One
    /// idempotency key covers them all. Refusals are stored as results too: to send a refused message again, use a new request with a new
    /// key.
    "messages.send_many" SendMessages: Caller { ; Repeatable<MessageBatch> } -> Kept<SendResults>, SEND, BATCH;
    /// Lists messages, newest first.
    "messages.list" ListMessages: Caller { ; Before } -> MessageList, READ_SENT, NEVER;
    /// Shows a message as requested.
    "messages.show" ShowMessage: Caller { message: MessageId; () } -> MessageView, READ_SENT, NEVER;
    /// Returns the ledger of a message's campaign.
    "messages.ledger" ShowMessageLedger: Caller { message: MessageId; () } -> LedgerView, READ_SENT, NEVER;
    /// Lists the deliveries of a message with their last attempts, all or those in one state: shows the devices that did not get it, and
    /// the reasons.
    "messages.all_deliveries" ListMessageDeliveries: Caller { message: MessageId; DeliveryQuery } -> DeliveryList, READ_SENT, NEVER;
    /// Returns every attempt to deliver one message to one device.
    "messages.deliveries" ListDeliveries: Caller { message: MessageId, device: DeviceId; () } -> Deliveries, READ, NEVER;

    /// Lists campaigns, newest first.
    "campaigns.list" ListCampaigns: Caller { ; Before } -> CampaignList, READ_SENT, NEVER;
    /// Returns the ledger of a campaign. The id of its message is accepted as well.
    "campaigns.show" ShowCampaign: Caller { campaign: CampaignId; () } -> LedgerView, READ_SENT, NEVER;
    /// Cancels a campaign for good: queued deliveries are canceled, deliveries in flight complete.
    "campaigns.cancel" CancelCampaign: AppAuthor { campaign: CampaignId; () } -> LedgerView, SEND, STATE;
    /// Pauses a campaign. Its time to live keeps running.
    "campaigns.pause" PauseCampaign: AppAuthor { campaign: CampaignId; () } -> LedgerView, SEND, STATE;
    /// Resumes a paused campaign.
    "campaigns.resume" ResumeCampaign: AppAuthor { campaign: CampaignId; () } -> LedgerView, SEND, STATE;

    /// Creates a schedule.
    "schedules.create" CreateSchedule: AppAuthor { ; Repeatable<ScheduleRequest> } -> Kept<ScheduleView>, SEND, SCHEDULING;
    /// Lists schedules in order of id.
    "schedules.list" ListSchedules: Caller { ; After } -> ScheduleList, READ_SENT, NEVER;
    /// Shows a schedule with its next five occurrences.
    "schedules.show" ShowSchedule: Caller { schedule: ScheduleId; () } -> ScheduleView, READ_SENT, NEVER;
    /// Cancels and deletes a schedule, even if it cannot be read. Messages already sent stay.
    "schedules.remove" RemoveSchedule: AppAuthor { schedule: ScheduleId; Conditional<()> } -> (), SEND, GUARDED;
    /// Cancels a schedule. Messages already sent stay. An unreadable schedule is deleted, and the reply does not show it.
    "schedules.cancel" CancelSchedule: AppAuthor { schedule: ScheduleId; () } -> Option<ScheduleView>, SEND, STATE;
    /// Pauses a schedule. Occurrences during the pause are not made up for.
    "schedules.pause" PauseSchedule: AppAuthor { schedule: ScheduleId; () } -> ScheduleView, SEND, STATE;
    /// Resumes a paused schedule from its next occurrence.
    "schedules.resume" ResumeSchedule: AppAuthor { schedule: ScheduleId; () } -> ScheduleView, SEND, STATE;

    /// Proposes a message, which somebody else can approve within three days.
    "proposals.create" CreateProposal: AppAuthor { ; ProposalRequest } -> ProposalView, SEND, PROPOSING;
    /// Lists the messages that wait for an approval, in order of id.
    "proposals.list" ListProposals: Caller { ; After } -> ProposalList, READ_SENT, NEVER;
    /// Shows a proposal, also after its approval.
    "proposals.show" ShowProposal: Caller { proposal: ProposalId; () } -> ProposalView, READ_SENT, NEVER;
    /// Approves a proposal of somebody else, and sends its message. Approving it again changes nothing.
    "proposals.approve" ApproveProposal: AppAuthor { proposal: ProposalId; () } -> ProposalView, SEND, APPROVING;
    /// Rejects or withdraws a proposal. A message that was sent stays.
    "proposals.remove" RemoveProposal: AppAuthor { proposal: ProposalId; () } -> (), SEND, NEVER;

    /// Creates a broadcast channel of Live Activities at its push service, which chooses the name.
    "channels.create" CreateChannel: Caller { ; ChannelRequest } -> ChannelView, SEND, CHANNEL;
    /// Lists the app's broadcast channels of Live Activities, as their push service lists them.
    "channels.list" ListChannels: Caller { ; () } -> ChannelList, SEND, STATE;
    /// Deletes a broadcast channel of Live Activities at its push service, for good.
    "channels.remove" RemoveChannel: Caller { channel: ChannelId; () } -> (), SEND, STATE;

    /// Publishes a service or renews it. It can be found until it expires.
    "services.publish" PublishService: Caller { service: ServiceName; ServiceRequest } -> PublishedServiceView, REGISTER, MORE;
    /// Lists the services of the app by name, of one kind or of all.
    "services.list" ListServices: Caller { ; ServiceQuery } -> ServiceList, READ, NEVER;
    /// Shows a service.
    "services.show" ShowService: Caller { service: ServiceName; () } -> PublishedServiceView, READ, NEVER;
    /// Removes a service; it can no longer be found.
    "services.remove" RemoveService: Caller { service: ServiceName; () } -> (), REGISTER, NEVER;

    /// Lists upstream messages of the app that are not acknowledged yet, oldest first.
    "upstream.list" ListUpstream: Caller { ; After } -> UpstreamList, READ_SENT, NEVER;
    /// Acknowledges upstream messages: they are not delivered again. Messages acknowledged before count as unchanged.
    "upstream.acknowledge" AcknowledgeUpstream: Caller { ; UpstreamIds } -> UpstreamChangeView, SEND, NEVER;
    /// Lists upstream messages that were not acknowledged in time, with the reasons, oldest first.
    "upstream.dead_letters" ListDeadLetters: Caller { ; After } -> DeadLetterList, READ_SENT, NEVER;
    /// Retries dead letters: they wait again, for four weeks at most.
    "upstream.retry_dead_letters" RetryDeadLetters: Caller { ; UpstreamIds } -> UpstreamChangeView, SEND, NEVER;

    /// Lists changes with their authors, newest first (root key).
    "audit.list" ListAudit: (Identity, Option<AppId>) { ; AuditQuery } -> AuditList, ROOT, NEVER;

    /// Returns the status of all parts of the server (root key).
    "status.status" ShowStatus: Identity { ; () } -> StatusView, ROOT, NEVER;
    /// Lists the servers that use the store (root key).
    "nodes.list" ListNodes: Identity { ; () } -> NodeList, ROOT, NEVER;
    /// Lists the settings of the server that answers, as its file and its environment have them, with meaning and origin (root key).
    "settings.list" ListSettings: Identity { ; () } -> SettingList, ROOT, NEVER;
}
