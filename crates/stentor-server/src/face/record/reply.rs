//! Encodes the typed reply of an operation as a record.

use serde::Serialize;
use serde_json::{Value, json};

use super::dispatch::Record;
use crate::contract::accounts::{NewServiceAccount, ServiceAccountList};
use crate::contract::apps::{AppList, AppView, KeyList, NewKey};
use crate::contract::audit::AuditList;
use crate::contract::bulk::{RegisterResults, SendResults, SubscribeResults};
use crate::contract::campaigns::{CampaignList, LedgerView};
use crate::contract::channels::{ChannelList, ChannelView};
use crate::contract::credentials::{CredentialCheck, CredentialList};
use crate::contract::devices::{
    Deliveries, DeliveryList, DeviceList, DeviceTopics, DeviceView, History, RegisteredView,
};
use crate::contract::groups::{GroupList, GroupView, MemberList};
use crate::contract::import::ImportResult;
use crate::contract::messages::{MessageList, MessageView, Sent};
use crate::contract::nodes::NodeList;
use crate::contract::proposals::{ProposalList, ProposalView};
use crate::contract::schedules::{ScheduleList, ScheduleView};
use crate::contract::services::{PublishedServiceView, ServiceList};
use crate::contract::settings::SettingList;
use crate::contract::status::StatusView;
use crate::contract::topics::{SubscriptionChangeView, TopicList, TopicView};
use crate::contract::upstream::{DeadLetterList, UpstreamChangeView, UpstreamList};
use crate::contract::users::{UserList, UserView};
use crate::contract::webhooks::{NewUpstreamWebhook, UpstreamWebhookView};
use crate::contract::{ErrorCode, Kept, Problem, ServiceResult};

/// A reply that can be encoded as a record.
pub(in crate::face) trait IntoRecord {
    /// Encodes the reply in the shape that the contract describes.
    fn into_record(self) -> ServiceResult<Record>;
}

macro_rules! by_writing {
    ($($reply:ty)*) => {$(
        impl IntoRecord for $reply {
            fn into_record(self) -> ServiceResult<Record> {
                written(&self)
            }
        }
    )*};
}

by_writing! {
    AppList AppView AuditList CampaignList CredentialCheck CredentialList Deliveries DeliveryList DeviceList DeviceTopics DeviceView GroupList
    GroupView History ImportResult KeyList LedgerView MemberList MessageList MessageView NewKey NodeList RegisteredView ScheduleList
    ChannelList ChannelView ProposalList ProposalView SettingList PublishedServiceView ScheduleView ServiceList StatusView SubscriptionChangeView TopicList TopicView UserList UserView RegisterResults SubscribeResults NewServiceAccount ServiceAccountList
    DeadLetterList NewUpstreamWebhook UpstreamChangeView UpstreamList UpstreamWebhookView
}

impl IntoRecord for () {
    fn into_record(self) -> ServiceResult<Record> {
        Ok(Record::new())
    }
}

impl IntoRecord for Option<ScheduleView> {
    fn into_record(self) -> ServiceResult<Record> {
        written(&self.map_or(json!({}), |schedule| json!({"schedule": schedule})))
    }
}

impl IntoRecord for Kept<ScheduleView> {
    fn into_record(self) -> ServiceResult<Record> {
        written(&json!({"schedule": self.reply, "replayed": self.replayed}))
    }
}

impl IntoRecord for Kept<SendResults> {
    fn into_record(self) -> ServiceResult<Record> {
        written(&json!({"results": self.reply.results, "replayed": self.replayed}))
    }
}

impl IntoRecord for Sent {
    fn into_record(self) -> ServiceResult<Record> {
        written(&match self {
            Self::Kept(accepted) => json!({"accepted": accepted.reply, "replayed": accepted.replayed}),
            Self::Checked(report) => json!({"checked": report, "replayed": false}),
        })
    }
}

fn written(reply: &impl Serialize) -> ServiceResult<Record> {
    match serde_json::to_value(reply) {
        Ok(Value::Object(record)) => Ok(record),
        Ok(_) | Err(_) => Err(Problem::new(ErrorCode::Internal, "the reply cannot be written")),
    }
}
