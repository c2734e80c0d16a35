//! How each record of the contract is written in HTTP: requests in the query or as JSON, replies as JSON with a status and
//! the headers that go with it.

use axum::Json;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::path::{OperationBuilder, ParameterIn};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::{HeaderBuilder, ObjectBuilder, Ref, RefOr, Required, ResponseBuilder, Schema, Type};
use utoipa::{IntoParams, ToSchema};

use super::extract::{JsonBody, LargeBody, LargeText, QueryParams, RepeatableBody};
use crate::contract::accounts::{NewServiceAccount, ServiceAccountList, ServiceAccountRequest};
use crate::contract::apps::{AppList, AppRequest, AppView, KeyList, KeyRequest, NewKey};
use crate::contract::audit::{AuditList, AuditQuery};
use crate::contract::campaigns::{CampaignList, LedgerView};
use crate::contract::credentials::{CredentialList, CredentialRequest};
use crate::contract::devices::{
    Deliveries, DeviceChange, DeviceList, DeviceQuery, DeviceRequest, DeviceTopics, DeviceView, History,
    RegisteredView,
};
use crate::contract::groups::{GroupList, GroupView, MemberList, MembersRequest};
use crate::contract::import::ImportResult;
use crate::contract::messages::{DryRun, MessageAccepted, MessageList, MessageRequest, MessageView, Sent};
use crate::contract::schedules::{ScheduleList, ScheduleRequest, ScheduleView};
use crate::contract::status::StatusView;
use crate::contract::topics::{SubscriptionChangeView, SubscriptionRequest, TopicList, TopicView};
use crate::contract::users::{UserList, UserView};
use crate::contract::{After, Before, Kept, Repeatable};
use crate::face::Api;
use crate::face::http::refusal::Refusal;

const JSON: &str = "application/json";
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// Schemas that a description refers to, under their names.
pub(super) type Schemas = Vec<(String, RefOr<Schema>)>;

/// A record that a request carries.
pub(super) trait RequestRecord: Sized {
    /// Reads it from a request for the named operation.
    fn read(
        request: Request,
        api: &Api,
        operation: &'static str,
    ) -> impl Future<Output = Result<Self, Refusal>> + Send;

    /// Describes where it is.
    fn describe(operation: OperationBuilder, schemas: &mut Schemas) -> OperationBuilder;
}

/// A record that a response carries.
pub(super) trait ReplyRecord {
    /// Writes it; `done` is the status where the record knows none itself.
    fn respond(self, done: StatusCode) -> Response;

    /// Describes the responses.
    fn describe(operation: OperationBuilder, done: StatusCode, schemas: &mut Schemas) -> OperationBuilder;
}

impl RequestRecord for () {
    async fn read(_: Request, _: &Api, _: &'static str) -> Result<Self, Refusal> {
        Ok(())
    }

    fn describe(operation: OperationBuilder, _: &mut Schemas) -> OperationBuilder {
        operation
    }
}

macro_rules! in_query {
    ($($record:ty)*) => {$(
        impl RequestRecord for $record {
            async fn read(request: Request, api: &Api, _: &'static str) -> Result<Self, Refusal> {
                let (mut parts, _) = request.into_parts();
                Ok(QueryParams::from_request_parts(&mut parts, api).await?.0)
            }

            fn describe(operation: OperationBuilder, _: &mut Schemas) -> OperationBuilder {
                let parameters = <$record>::into_params(|| Some(ParameterIn::Query));
                parameters.into_iter().fold(operation, OperationBuilder::parameter)
            }
        }
    )*};
}

in_query! { After Before DeviceQuery AuditQuery }

macro_rules! in_body {
    ($body:ident: $($record:ty)*) => {$(
        impl RequestRecord for $record {
            async fn read(request: Request, api: &Api, _: &'static str) -> Result<Self, Refusal> {
                Ok($body::from_request(request, api).await?.0)
            }

            fn describe(operation: OperationBuilder, schemas: &mut Schemas) -> OperationBuilder {
                body::<$record>(operation, schemas)
            }
        }
    )*};
}

in_body! { JsonBody: AppRequest KeyRequest ServiceAccountRequest SubscriptionRequest }
in_body! { LargeBody: DeviceRequest DeviceChange MembersRequest }

impl RequestRecord for CredentialRequest {
    async fn read(request: Request, api: &Api, _: &'static str) -> Result<Self, Refusal> {
        let LargeText(json) = LargeText::from_request(request, api).await?;
        Ok(Self { json: json.into() })
    }

    /// The description of each push service's own path names its fields.
    fn describe(operation: OperationBuilder, _: &mut Schemas) -> OperationBuilder {
        operation
    }
}

macro_rules! repeatable {
    ($($record:ty)*) => {$(
        impl RequestRecord for Repeatable<$record> {
            async fn read(request: Request, api: &Api, operation: &'static str) -> Result<Self, Refusal> {
                RepeatableBody::read(request, api, operation).await
            }

            fn describe(operation: OperationBuilder, schemas: &mut Schemas) -> OperationBuilder {
                body::<$record>(operation, schemas)
            }
        }
    )*};
}

repeatable! { MessageRequest ScheduleRequest }

macro_rules! as_json {
    ($($record:ty)*) => {$(
        impl ReplyRecord for $record {
            fn respond(self, done: StatusCode) -> Response {
                (done, Json(self)).into_response()
            }

            fn describe(operation: OperationBuilder, done: StatusCode, schemas: &mut Schemas) -> OperationBuilder {
                operation.response(done.as_str(), json::<$record>(schemas))
            }
        }
    )*};
}

as_json! {
    AppList AppView AuditList CampaignList CredentialList Deliveries DeviceList DeviceTopics DeviceView GroupList GroupView History
    ImportResult KeyList LedgerView MemberList MessageList MessageView NewKey NewServiceAccount ScheduleList ScheduleView
    ServiceAccountList StatusView
    SubscriptionChangeView TopicList TopicView UserList UserView
}

impl ReplyRecord for () {
    fn respond(self, _: StatusCode) -> Response {
        StatusCode::NO_CONTENT.into_response()
    }

    fn describe(operation: OperationBuilder, _: StatusCode, _: &mut Schemas) -> OperationBuilder {
        operation.response(StatusCode::NO_CONTENT.as_str(), ResponseBuilder::new())
    }
}

/// Something, or nothing to show.
impl ReplyRecord for Option<ScheduleView> {
    fn respond(self, done: StatusCode) -> Response {
        match self {
            Some(view) => view.respond(done),
            None => ().respond(done),
        }
    }

    fn describe(operation: OperationBuilder, done: StatusCode, schemas: &mut Schemas) -> OperationBuilder {
        let operation = <ScheduleView as ReplyRecord>::describe(operation, done, schemas);
        <() as ReplyRecord>::describe(operation, done, schemas)
    }
}

impl ReplyRecord for RegisteredView {
    fn respond(self, _: StatusCode) -> Response {
        let status = if self.created { StatusCode::CREATED } else { StatusCode::OK };
        (status, [location("/v1/devices/", &self.id)], Json(self)).into_response()
    }

    fn describe(operation: OperationBuilder, _: StatusCode, schemas: &mut Schemas) -> OperationBuilder {
        let (new, known) = (json::<Self>(schemas), json::<Self>(schemas));
        operation
            .response(StatusCode::CREATED.as_str(), new.description("Registered"))
            .response(StatusCode::OK.as_str(), known.description("Already registered"))
    }
}

impl ReplyRecord for Kept<ScheduleView> {
    fn respond(self, done: StatusCode) -> Response {
        let location = location("/v1/schedules/", &self.reply.id);
        (done, [location], replayed(self.replayed), Json(self)).into_response()
    }

    fn describe(operation: OperationBuilder, done: StatusCode, schemas: &mut Schemas) -> OperationBuilder {
        operation.response(done.as_str(), with_headers(json::<ScheduleView>(schemas)))
    }
}

impl ReplyRecord for Sent {
    fn respond(self, _: StatusCode) -> Response {
        match self {
            Self::Kept(kept) => {
                let location = location("/v1/messages/", &kept.reply.id);
                (StatusCode::ACCEPTED, [location], replayed(kept.replayed), Json(kept)).into_response()
            }
            Self::Checked(report) => Json(report).into_response(),
        }
    }

    fn describe(operation: OperationBuilder, _: StatusCode, schemas: &mut Schemas) -> OperationBuilder {
        let kept = json::<MessageAccepted>(schemas).description("Accepted: the message is on disk");
        let checked = json::<DryRun>(schemas).description("Dry run: checked and counted, nothing kept");
        operation
            .response(StatusCode::ACCEPTED.as_str(), with_headers(kept))
            .response(StatusCode::OK.as_str(), checked)
    }
}

fn location(folder: &str, id: &impl std::fmt::Display) -> (HeaderName, HeaderValue) {
    let address = HeaderValue::try_from(format!("{folder}{id}"));
    (header::LOCATION, address.unwrap_or(HeaderValue::from_static("/")))
}

fn replayed(is_replayed: bool) -> Option<[(HeaderName, HeaderValue); 1]> {
    is_replayed.then(|| [(REPLAYED, HeaderValue::from_static("true"))])
}

/// Refers to the schema of a record.
fn reference<T: ToSchema>(schemas: &mut Schemas) -> Ref {
    T::schemas(schemas);
    schemas.push((T::name().into_owned(), T::schema()));
    Ref::from_schema_name(T::name())
}

fn body<T: ToSchema>(operation: OperationBuilder, schemas: &mut Schemas) -> OperationBuilder {
    let content = ContentBuilder::new().schema(Some(reference::<T>(schemas))).build();
    let body = RequestBodyBuilder::new().content(JSON, content).required(Some(Required::True));
    operation.request_body(Some(body.build()))
}

fn json<T: ToSchema>(schemas: &mut Schemas) -> ResponseBuilder {
    ResponseBuilder::new().content(JSON, ContentBuilder::new().schema(Some(reference::<T>(schemas))).build())
}

/// What goes with the reply to something that is kept once.
fn with_headers(response: ResponseBuilder) -> ResponseBuilder {
    let text = || HeaderBuilder::new().schema(Some(ObjectBuilder::new().schema_type(Type::String))).build();
    response.header("Location", text()).header("Idempotent-Replayed", text())
}
