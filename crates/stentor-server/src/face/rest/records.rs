//! Mapping of the contract's records to HTTP: requests in the query or in the body, replies with a status and headers.

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::{HeaderValue, StatusCode};
use serde::Serialize;
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::path::{OperationBuilder, ParameterIn};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::{
    Header, HeaderBuilder, ObjectBuilder, Ref, RefOr, Required, ResponseBuilder, Schema, Type,
};
use utoipa::{IntoParams, ToSchema};

use super::etag::not_comparable;
use super::extract::{JsonBody, LargeBody, LargeText, QueryParams, RepeatableBody};
use super::reply::ReplyHead;
use crate::contract::accounts::{NewServiceAccount, ServiceAccountList, ServiceAccountRequest};
use crate::contract::apps::{AppList, AppRequest, AppView, KeyList, KeyRequest, NewKey};
use crate::contract::audit::{AuditList, AuditQuery};
use crate::contract::bulk::{
    DeviceBatch, MessageBatch, RegisterResults, SendResults, SubscribeResults, SubscriptionBatch,
};
use crate::contract::campaigns::{CampaignList, LedgerView};
use crate::contract::channels::{ChannelList, ChannelRequest, ChannelView};
use crate::contract::credentials::{CredentialCheck, CredentialList, CredentialRequest};
use crate::contract::devices::{
    Deliveries, DeliveryList, DeliveryQuery, DeviceChange, DeviceList, DeviceQuery, DeviceRequest,
    DeviceTopics, DeviceView, History, RegisteredView,
};
use crate::contract::groups::{GroupList, GroupView, MemberList, MembersRequest};
use crate::contract::import::ImportResult;
use crate::contract::messages::{DryRun, MessageAccepted, MessageList, MessageRequest, MessageView, Sent};
use crate::contract::nodes::NodeList;
use crate::contract::proposals::{ProposalList, ProposalRequest, ProposalView};
use crate::contract::schedules::{ScheduleList, ScheduleRequest, ScheduleView};
use crate::contract::services::{PublishedServiceView, ServiceList, ServiceQuery, ServiceRequest};
use crate::contract::settings::SettingList;
use crate::contract::status::StatusView;
use crate::contract::topics::{SubscriptionChangeView, SubscriptionRequest, TopicList, TopicView};
use crate::contract::upstream::{DeadLetterList, UpstreamChangeView, UpstreamIds, UpstreamList};
use crate::contract::users::{UserList, UserView};
use crate::contract::webhooks::{NewUpstreamWebhook, UpstreamWebhookRequest, UpstreamWebhookView};
use crate::contract::{After, Before, Conditional, Kept, Repeatable, ServiceResult, StateCondition};
use crate::face::Api;
use crate::face::http::refusal::Refusal;
use crate::face::record::{FromRecord, IntoRecord};

const JSON: &str = "application/json";

/// Schemas that a description refers to, by name.
pub(super) type NamedSchemas = Vec<(String, RefOr<Schema>)>;

/// Size class of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodySize {
    /// The usual limit.
    Usual,
    /// A higher limit, for many names or a chain of certificates.
    Large,
}

impl BodySize {
    /// Returns the limit in bytes.
    pub(super) fn max_bytes(self, api: &Api) -> usize {
        match self {
            Self::Usual => api.body_max_bytes(),
            Self::Large => api.large_body_max_bytes(),
        }
    }
}

/// A record in a request.
pub(super) trait RequestRecord: FromRecord {
    /// Size class of the body; `None` if the body contains no record.
    const BODY: Option<BodySize>;
    /// True if the request is a change with an optional precondition.
    const IS_CONDITIONAL: bool = false;

    /// Adds the precondition of a change. Fails if the operation has no state to compare it with.
    fn on_condition(self, _: StateCondition) -> ServiceResult<Self> {
        Err(not_comparable())
    }

    /// Reads the record from a request for the named operation, with a JSON body.
    fn read(
        request: Request,
        api: &Api,
        operation: &'static str,
    ) -> impl Future<Output = Result<Self, Refusal>> + Send;

    /// Describes the parameters and the body of the request.
    fn describe(operation: OperationBuilder, schemas: &mut NamedSchemas) -> OperationBuilder;
}

/// A record in a response.
pub(super) trait ReplyRecord: IntoRecord + Serialize {
    /// Returns the status and the headers; `done` is the status of records without one of their own.
    fn head(&self, done: StatusCode) -> ReplyHead;

    /// Describes the responses.
    fn describe(
        operation: OperationBuilder,
        done: StatusCode,
        schemas: &mut NamedSchemas,
    ) -> OperationBuilder;
}

impl RequestRecord for () {
    const BODY: Option<BodySize> = None;

    async fn read(_: Request, _: &Api, _: &'static str) -> Result<Self, Refusal> {
        Ok(())
    }

    fn describe(operation: OperationBuilder, _: &mut NamedSchemas) -> OperationBuilder {
        operation
    }
}

impl<T: RequestRecord + Send> RequestRecord for Conditional<T> {
    const BODY: Option<BodySize> = T::BODY;
    const IS_CONDITIONAL: bool = true;

    fn on_condition(self, condition: StateCondition) -> ServiceResult<Self> {
        Ok(Self { condition: Some(condition), ..self })
    }

    async fn read(request: Request, api: &Api, operation: &'static str) -> Result<Self, Refusal> {
        Ok(T::read(request, api, operation).await?.into())
    }

    fn describe(operation: OperationBuilder, schemas: &mut NamedSchemas) -> OperationBuilder {
        T::describe(operation, schemas)
    }
}

macro_rules! in_query {
    ($($record:ty)*) => {$(
        impl RequestRecord for $record {
            const BODY: Option<BodySize> = None;

            async fn read(request: Request, api: &Api, _: &'static str) -> Result<Self, Refusal> {
                let (mut parts, _) = request.into_parts();
                Ok(QueryParams::from_request_parts(&mut parts, api).await?.0)
            }

            fn describe(operation: OperationBuilder, _: &mut NamedSchemas) -> OperationBuilder {
                let parameters = <$record>::into_params(|| Some(ParameterIn::Query));
                parameters.into_iter().fold(operation, OperationBuilder::parameter)
            }
        }
    )*};
}

in_query! { After Before DeliveryQuery DeviceQuery AuditQuery ServiceQuery }

macro_rules! in_body {
    ($body:ident, $size:ident: $($record:ty)*) => {$(
        impl RequestRecord for $record {
            const BODY: Option<BodySize> = Some(BodySize::$size);

            async fn read(request: Request, api: &Api, _: &'static str) -> Result<Self, Refusal> {
                Ok($body::from_request(request, api).await?.0)
            }

            fn describe(operation: OperationBuilder, schemas: &mut NamedSchemas) -> OperationBuilder {
                body::<$record>(operation, schemas)
            }
        }
    )*};
}

in_body! { JsonBody, Usual: AppRequest ChannelRequest ProposalRequest KeyRequest ServiceAccountRequest ServiceRequest SubscriptionRequest UpstreamWebhookRequest }
in_body! { LargeBody, Large: DeviceBatch SubscriptionBatch DeviceRequest DeviceChange MembersRequest UpstreamIds }

impl RequestRecord for CredentialRequest {
    const BODY: Option<BodySize> = Some(BodySize::Large);

    async fn read(request: Request, api: &Api, _: &'static str) -> Result<Self, Refusal> {
        let LargeText(json) = LargeText::from_request(request, api).await?;
        Ok(Self { json: json.into() })
    }

    /// The path of each push service describes the fields itself.
    fn describe(operation: OperationBuilder, _: &mut NamedSchemas) -> OperationBuilder {
        operation
    }
}

macro_rules! repeatable {
    ($size:ident: $($record:ty)*) => {$(
        impl RequestRecord for Repeatable<$record> {
            const BODY: Option<BodySize> = Some(BodySize::$size);

            async fn read(request: Request, api: &Api, operation: &'static str) -> Result<Self, Refusal> {
                RepeatableBody::read(request, api, BodySize::$size, operation).await
            }

            fn describe(operation: OperationBuilder, schemas: &mut NamedSchemas) -> OperationBuilder {
                body::<$record>(operation, schemas)
            }
        }
    )*};
}

repeatable! { Usual: MessageRequest ScheduleRequest }
repeatable! { Large: MessageBatch }

macro_rules! as_json {
    ($($record:ty)*) => {$(
        impl ReplyRecord for $record {
            fn head(&self, done: StatusCode) -> ReplyHead {
                ReplyHead::of(done)
            }

            fn describe(operation: OperationBuilder, done: StatusCode, schemas: &mut NamedSchemas) -> OperationBuilder {
                operation.response(done.as_str(), json::<$record>(schemas))
            }
        }
    )*};
}

as_json! {
    AppList AppView AuditList CampaignList CredentialCheck CredentialList Deliveries DeliveryList DeviceList DeviceTopics DeviceView GroupList GroupView History
    ImportResult KeyList LedgerView MemberList MessageList MessageView NewKey NodeList ChannelList ChannelView ProposalList ProposalView SettingList PublishedServiceView ScheduleList ScheduleView
    ServiceList StatusView SubscriptionChangeView TopicList TopicView UserList UserView RegisterResults SubscribeResults NewServiceAccount ServiceAccountList
    DeadLetterList NewUpstreamWebhook UpstreamChangeView UpstreamList UpstreamWebhookView
}

impl ReplyRecord for () {
    fn head(&self, _: StatusCode) -> ReplyHead {
        ReplyHead::of(StatusCode::NO_CONTENT)
    }

    fn describe(operation: OperationBuilder, _: StatusCode, _: &mut NamedSchemas) -> OperationBuilder {
        operation.response(StatusCode::NO_CONTENT.as_str(), ResponseBuilder::new())
    }
}

/// A schedule, or an empty response if it cannot be shown.
impl ReplyRecord for Option<ScheduleView> {
    fn head(&self, done: StatusCode) -> ReplyHead {
        ReplyHead::of(if self.is_some() { done } else { StatusCode::NO_CONTENT })
    }

    fn describe(
        operation: OperationBuilder,
        done: StatusCode,
        schemas: &mut NamedSchemas,
    ) -> OperationBuilder {
        let operation = <ScheduleView as ReplyRecord>::describe(operation, done, schemas);
        <() as ReplyRecord>::describe(operation, done, schemas)
    }
}

impl ReplyRecord for RegisteredView {
    fn head(&self, _: StatusCode) -> ReplyHead {
        let status = if self.created { StatusCode::CREATED } else { StatusCode::OK };
        ReplyHead { location: location("/v1/devices/", &self.id), ..ReplyHead::of(status) }
    }

    fn describe(operation: OperationBuilder, _: StatusCode, schemas: &mut NamedSchemas) -> OperationBuilder {
        let (new, known) = (json::<Self>(schemas), json::<Self>(schemas));
        operation
            .response(StatusCode::CREATED.as_str(), new.description("Registered"))
            .response(StatusCode::OK.as_str(), known.description("Already registered"))
    }
}

impl ReplyRecord for Kept<ScheduleView> {
    fn head(&self, status: StatusCode) -> ReplyHead {
        let location = location("/v1/schedules/", &self.reply.id);
        ReplyHead { status, location, is_replayed: self.replayed }
    }

    fn describe(
        operation: OperationBuilder,
        done: StatusCode,
        schemas: &mut NamedSchemas,
    ) -> OperationBuilder {
        operation.response(done.as_str(), with_headers(json::<ScheduleView>(schemas)))
    }
}

impl ReplyRecord for Kept<SendResults> {
    fn head(&self, status: StatusCode) -> ReplyHead {
        ReplyHead { is_replayed: self.replayed, ..ReplyHead::of(status) }
    }

    fn describe(
        operation: OperationBuilder,
        done: StatusCode,
        schemas: &mut NamedSchemas,
    ) -> OperationBuilder {
        operation.response(done.as_str(), with_replayed(json::<SendResults>(schemas)))
    }
}

impl ReplyRecord for Sent {
    fn head(&self, _: StatusCode) -> ReplyHead {
        match self {
            Self::Kept(accepted) => ReplyHead {
                status: StatusCode::ACCEPTED,
                location: location("/v1/messages/", &accepted.reply.id),
                is_replayed: accepted.replayed,
            },
            Self::Checked(_) => ReplyHead::of(StatusCode::OK),
        }
    }

    fn describe(operation: OperationBuilder, _: StatusCode, schemas: &mut NamedSchemas) -> OperationBuilder {
        let accepted = json::<MessageAccepted>(schemas).description("Accepted: the message is on disk");
        let checked = json::<DryRun>(schemas).description("Dry run: checked and counted, nothing kept");
        operation
            .response(StatusCode::ACCEPTED.as_str(), with_headers(accepted))
            .response(StatusCode::OK.as_str(), checked)
    }
}

fn location(folder: &str, id: &impl std::fmt::Display) -> Option<HeaderValue> {
    HeaderValue::try_from(format!("{folder}{id}")).ok()
}

/// Returns a reference to the schema of a record.
fn reference<T: ToSchema>(schemas: &mut NamedSchemas) -> Ref {
    T::schemas(schemas);
    schemas.push((T::name().into_owned(), T::schema()));
    Ref::from_schema_name(T::name())
}

fn body<T: ToSchema>(operation: OperationBuilder, schemas: &mut NamedSchemas) -> OperationBuilder {
    let content = ContentBuilder::new().schema(Some(reference::<T>(schemas))).build();
    let body = RequestBodyBuilder::new().content(JSON, content).required(Some(Required::True));
    operation.request_body(Some(body.build()))
}

fn json<T: ToSchema>(schemas: &mut NamedSchemas) -> ResponseBuilder {
    ResponseBuilder::new().content(JSON, ContentBuilder::new().schema(Some(reference::<T>(schemas))).build())
}

/// Adds the headers of a reply to a creation under an idempotency key.
fn with_headers(response: ResponseBuilder) -> ResponseBuilder {
    with_replayed(response.header("Location", text_header()))
}

fn with_replayed(response: ResponseBuilder) -> ResponseBuilder {
    response.header("Idempotent-Replayed", text_header())
}

fn text_header() -> Header {
    HeaderBuilder::new().schema(Some(ObjectBuilder::new().schema_type(Type::String))).build()
}
