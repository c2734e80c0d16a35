//! The OpenAPI document, generated from the routes. Details that types cannot express are added from tables.

mod credentials;
mod exact;
mod examples;
mod generators;
mod links;
mod patterns;
mod words;
mod xml;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde_json::json;
use utoipa::openapi::content::{Content, ContentBuilder};
use utoipa::openapi::path::Operation;
use utoipa::openapi::response::ResponseBuilder;
use utoipa::openapi::security::{
    ApiKey, ApiKeyValue, Http, HttpAuthScheme, SecurityRequirement, SecurityScheme,
};
use utoipa::openapi::server::ServerBuilder;
use utoipa::openapi::tag::TagBuilder;
use utoipa::openapi::{InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder, PathItem, Ref, RefOr};

use super::error::{PROBLEM_JSON, PROBLEM_PROTOBUF, PROBLEM_XML};
use super::format::MEDIA_TYPES;
pub(super) use credentials::ROUTE as CREDENTIAL_ROUTE;

const DESCRIPTION: &str = "Send Stentor one request: it finds the devices, sends through the push service that reaches each of \
them, and reports the state of every single delivery at any time. `202` means that the message is on disk.\n\n\
Keys: `Authorization: Bearer sk_…` or `X-API-Key: sk_…`. A key belongs to an app; the root key names one with \
`X-Stentor-App: app_…` or `?app=app_…`. Times are RFC 3339 in UTC with milliseconds. Every refusal is \
`application/problem+json` with a stable `code`.\n\nBodies are JSON, XML or Protocol Buffers, as `Content-Type` and `Accept` say; \
the records of the latter two are those of the WSDL and of the `.proto` file. Bodies may be compressed with `gzip` or `zstd`, \
both ways.";

/// Tags, in an order for readers.
const TAGS: &[(&str, &str)] = &[
    ("messages", "Messages to devices. All other sections of this page support them."),
    ("campaigns", "The sending of a message, and the books that prove it."),
    ("devices", "Registration, import, history."),
    ("topics", "Opt-in channels and their subscriptions."),
    ("users", "People, known by the app's own id."),
    ("groups", "Fixed sets of people and devices."),
    ("schedules", "Messages that are sent again and again."),
    ("proposals", "Messages that wait for the approval of somebody else."),
    ("channels", "Broadcast channels of Live Activities."),
    ("apps", "Tenants, their keys and their credentials at push services."),
    ("services", "A registry in which other services are published and found."),
    ("upstream", "Messages that devices send to the app."),
    ("audit", "The audit trail of all changes, for the operator."),
    ("nodes", "The servers that use the store together, for the operator."),
    ("settings", "The settings of the server, for the operator."),
    ("status", "The state of the server."),
    ("health", "Health checks, without a key."),
];

/// Returns the document as pretty JSON.
#[must_use]
pub fn openapi_json() -> String {
    static DOCUMENT: OnceLock<String> = OnceLock::new();
    DOCUMENT.get_or_init(written).clone()
}

fn written() -> String {
    let mut document = json!(document());
    credentials::describe_paths(&mut document);
    exact::apply(&mut document);
    xml::apply(&mut document);
    links::apply(&mut document);
    examples::apply(&mut document);
    // Last, so that records keep their names of the contract until then.
    generators::apply(&mut document);
    format!("{document:#}\n")
}

/// Builds the document from the routes.
pub(super) fn document() -> OpenApi {
    let mut document = super::described().into_openapi();
    let head = head();
    document.info = head.info;
    document.tags = head.tags;
    document.servers = head.servers;
    document.security = head.security;
    if let Some(components) = document.components.as_mut() {
        components.add_security_scheme("bearer", SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer)));
        let key = ApiKey::Header(ApiKeyValue::new("X-API-Key"));
        components.add_security_scheme("api_key", SecurityScheme::ApiKey(key));
        components.responses.insert("Problem".into(), RefOr::T(problem_response()));
        components.schemas.insert("Problem".into(), problem_schema());
    }
    document.paths.paths.values_mut().flat_map(operations).for_each(complete);
    document
}

/// Maps the names of all operations in the contract to method and path.
pub(super) fn addresses() -> &'static BTreeMap<String, String> {
    static ADDRESSES: OnceLock<BTreeMap<String, String>> = OnceLock::new();
    ADDRESSES.get_or_init(|| {
        let paths = super::described().into_openapi().paths.paths.into_iter();
        paths.flat_map(|(path, item)| addresses_at(&path, item)).collect()
    })
}

/// Returns the method and path of an operation, such as `PUT /v1/users/{external_id}`.
#[must_use]
pub fn address_of(operation: &'static str) -> String {
    addresses().get(operation).map_or(operation, String::as_str).to_owned()
}

fn addresses_at(path: &str, item: PathItem) -> Vec<(String, String)> {
    let PathItem { get, put, post, delete, patch, .. } = item;
    let methods = [("GET", get), ("PUT", put), ("POST", post), ("DELETE", delete), ("PATCH", patch)];
    let known = methods.into_iter().filter_map(|(method, operation)| Some((method, operation?)));
    known.map(|(method, operation)| (name_in_contract(&operation), format!("{method} {path}"))).collect()
}

fn name_in_contract(operation: &Operation) -> String {
    let noun = operation.tags.as_ref().and_then(|tags| tags.first()).cloned().unwrap_or_default();
    format!("{noun}.{}", operation.operation_id.clone().unwrap_or_default())
}

fn head() -> OpenApi {
    let license = LicenseBuilder::new().name("Apache-2.0").identifier(Some("Apache-2.0")).build();
    let info = InfoBuilder::new()
        .title("Stentor")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(DESCRIPTION))
        .license(Some(license));
    let tags = TAGS.iter().map(|(name, text)| TagBuilder::new().name(*name).description(Some(*text)).build());
    let none: [String; 0] = [];
    let security = ["bearer", "api_key"].map(|name| SecurityRequirement::new(name, none.clone()));
    let server =
        ServerBuilder::new().url("/").description(Some("The server that this page is from.")).build();
    OpenApiBuilder::new()
        .info(info.build())
        .servers(Some([server]))
        .tags(Some(tags))
        .security(Some(security))
        .build()
}

fn problem_schema() -> RefOr<utoipa::openapi::Schema> {
    <super::error::ProblemBody<'_> as utoipa::PartialSchema>::schema()
}

fn problem_response() -> utoipa::openapi::Response {
    let schema = Ref::from_schema_name("Problem");
    let content = ContentBuilder::new().schema(Some(schema)).build();
    let words: Vec<_> = super::error::error_codes()
        .iter()
        .map(|entry| format!("`{}` ({})", entry.code, entry.status))
        .collect();
    let description = format!("A refusal; `code` is one of {}.", words.join(", "));
    ResponseBuilder::new()
        .description(description)
        .content(PROBLEM_JSON, content)
        .content(PROBLEM_XML, ContentBuilder::new().build())
        .content(PROBLEM_PROTOBUF, ContentBuilder::new().build())
        .build()
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [&mut item.get, &mut item.put, &mut item.post, &mut item.delete, &mut item.patch].into_iter().flatten()
}

/// Gives an operation a unique id, and adds the response for refusals.
fn complete(operation: &mut Operation) {
    let noun = operation.tags.as_ref().and_then(|tags| tags.first()).cloned().unwrap_or_default();
    let verb = operation.operation_id.take().unwrap_or_default();
    operation.operation_id = Some(format!("{noun}_{verb}"));
    // Operations without a key are not part of the contract, and have a single format.
    if noun != "health" {
        add_other_formats(operation);
    }
    let problem = RefOr::Ref(Ref::from_response_name("Problem"));
    operation.responses.responses.insert("default".into(), problem);
}

fn add_other_formats(operation: &mut Operation) {
    let [json, ..] = MEDIA_TYPES;
    if let Some(RefOr::T(body)) = operation.request_body.as_mut() {
        let is_record = body.content.contains_key(json);
        body.content.extend(other_formats().filter(|_| is_record));
    }
    for response in operation.responses.responses.values_mut() {
        if let RefOr::T(response) = response {
            let is_record = response.content.contains_key(json);
            response.content.extend(other_formats().filter(|_| is_record));
        }
    }
}

/// Returns the other formats of a JSON body. The XML schema is added later; Protocol Buffers are described in the `.proto` file.
fn other_formats() -> impl Iterator<Item = (String, RefOr<Content>)> {
    MEDIA_TYPES.into_iter().skip(1).map(|name| (name.to_owned(), RefOr::T(ContentBuilder::new().build())))
}
