//! Shapes of the request and reply records of all operations.

use super::accounts::{NewServiceAccount, ServiceAccountList, ServiceAccountRequest};
use super::apps::{AppList, AppRequest, AppView, KeyList, KeyRequest, NewKey};
use super::audit::{AuditList, AuditQuery};
use super::bulk::{
    DeviceBatch, MessageBatch, RegisterResults, SendResult, SendResults, SubscribeResults, SubscriptionBatch,
};
use super::campaigns::{CampaignList, LedgerView};
use super::channels::{ChannelList, ChannelRequest, ChannelView};
use super::credentials::{CredentialCheck, CredentialList, CredentialRequest};
use super::devices::{
    Deliveries, DeliveryList, DeliveryQuery, DeviceChange, DeviceList, DeviceQuery, DeviceRequest,
    DeviceTopics, DeviceView, History, RegisteredView,
};
use super::groups::{GroupList, GroupView, MemberList, MembersRequest};
use super::import::{ImportQuery, ImportRequest, ImportResult};
use super::messages::{DryRun, MessageAccepted, MessageList, MessageRequest, MessageView, Sent};
use super::nodes::NodeList;
use super::proposals::{ProposalList, ProposalRequest, ProposalView};
use super::schedules::{ScheduleList, ScheduleRequest, ScheduleView};
use super::services::{PublishedServiceView, ServiceList, ServiceQuery, ServiceRequest};
use super::settings::SettingList;
use super::shape::{Described, FieldShape, RecordShape, Shape, Shapes, record_of};
use super::status::StatusView;
use super::topics::{SubscriptionChangeView, SubscriptionRequest, TopicList, TopicView};
use super::upstream::{DeadLetterList, UpstreamChangeView, UpstreamIds, UpstreamList};
use super::users::{UserList, UserView};
use super::webhooks::{NewUpstreamWebhook, UpstreamWebhookRequest, UpstreamWebhookView};
use super::{After, Before, Conditional, Kept, Repeatable};

macro_rules! by_its_schema {
    ($($record:ty)*) => {$(
        impl Described for $record {
            fn describe(shapes: &mut Shapes) -> RecordShape {
                record_of::<$record>(shapes)
            }
        }
    )*};
}

by_its_schema! {
    ChannelList ChannelRequest ChannelView ProposalList ProposalRequest ProposalView SettingList
    After AppList AppRequest AppView AuditList AuditQuery Before CampaignList CredentialCheck CredentialList Deliveries DeliveryList DeliveryQuery DeviceBatch DeviceChange
    DeviceList DeviceQuery DeviceRequest DeviceTopics DeviceView GroupList GroupView History ImportResult KeyList
    KeyRequest LedgerView MemberList MembersRequest MessageList MessageRequest MessageView NewKey NodeList RegisteredView ScheduleList
    PublishedServiceView ScheduleRequest ScheduleView ServiceList ServiceQuery ServiceRequest StatusView SubscriptionChangeView SubscriptionRequest TopicList TopicView UserList UserView MessageBatch RegisterResults SubscribeResults SubscriptionBatch NewServiceAccount ServiceAccountList ServiceAccountRequest DeadLetterList UpstreamChangeView UpstreamIds UpstreamList
    NewUpstreamWebhook UpstreamWebhookRequest UpstreamWebhookView
}

impl<T: Described> Described for Repeatable<T> {
    fn describe(shapes: &mut Shapes) -> RecordShape {
        let about = "Makes repeating harmless: the same key and the same request get the first reply again.";
        let mut record = T::describe(shapes);
        record.fields.push(FieldShape::optional("idempotency_key", Shape::Text, about));
        record
    }
}

/// A precondition is not part of the record.
impl<T: Described> Described for Conditional<T> {
    fn describe(shapes: &mut Shapes) -> RecordShape {
        T::describe(shapes)
    }
}

impl Described for CredentialRequest {
    fn describe(_: &mut Shapes) -> RecordShape {
        let about = "The credential as its push service needs it: an object of JSON.";
        let fields = vec![FieldShape::required("credential", Shape::Json, about)];
        RecordShape::new("CredentialRequest", "A credential.", fields)
    }
}

impl Described for ImportRequest {
    fn describe(shapes: &mut Shapes) -> RecordShape {
        let mut record = record_of::<ImportQuery>(shapes);
        let about = "The devices, one a line, as `format` says. A stream may carry them in pieces.";
        record.fields.push(FieldShape::required("lines", Shape::Text, about));
        record
    }
}

impl Described for Kept<ScheduleView> {
    fn describe(shapes: &mut Shapes) -> RecordShape {
        let schedule = Shape::Record(shapes.add::<ScheduleView>());
        let fields = vec![FieldShape::required("schedule", schedule, "The schedule."), replayed()];
        RecordShape::new("ScheduleKept", "A schedule that was kept.", fields)
    }
}

impl Described for Kept<SendResults> {
    fn describe(shapes: &mut Shapes) -> RecordShape {
        let results = Shape::List(Box::new(Shape::Record(shapes.add::<SendResult>())));
        let fields = vec![
            FieldShape::required("results", results, "The result of each message, in order."),
            replayed(),
        ];
        RecordShape::new("SendResults", "The results of many messages.", fields)
    }
}

impl Described for Option<ScheduleView> {
    fn describe(shapes: &mut Shapes) -> RecordShape {
        let schedule = Shape::Record(shapes.add::<ScheduleView>());
        let about = "The schedule; absent when it cannot be read.";
        RecordShape::new(
            "ScheduleEnded",
            "A schedule that was ended.",
            vec![FieldShape::optional("schedule", schedule, about)],
        )
    }
}

impl Described for Sent {
    fn describe(shapes: &mut Shapes) -> RecordShape {
        let accepted = Shape::Record(shapes.add::<MessageAccepted>());
        let checked = Shape::Record(shapes.add::<DryRun>());
        let fields = vec![
            FieldShape::optional("accepted", accepted, "The message that is kept; absent after a dry run."),
            FieldShape::optional("checked", checked, "The result of a dry run."),
            replayed(),
        ];
        RecordShape::new("Sent", "The result of a request to send.", fields)
    }
}

fn replayed() -> FieldShape {
    FieldShape::required(
        "replayed",
        Shape::Bool,
        "True if the reply was kept before, under the same idempotency key.",
    )
}
