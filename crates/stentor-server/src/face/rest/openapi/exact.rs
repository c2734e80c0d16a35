//! Details of requests that their types cannot express: the exact texts, numbers and combinations that the server accepts.

use serde_json::{Map, Value, json};
use stentor_core::audit::AuditAction;
use stentor_core::device::{DEVICE_TEXTS, Platform};
use stentor_core::limits;
use stentor_core::name::GroupName;
use stentor_providers::Descriptor;

use super::{credentials, words};
use crate::contract::LIMIT_MAX;

/// Parameters in paths, with their schemas.
const PATH_PARAMETERS: [(&str, &str); 12] = [
    ("channel", "ChannelId"),
    ("app", "AppId"),
    ("key", "KeyId"),
    ("device", "DeviceId"),
    ("message", "MessageId"),
    ("campaign", "CampaignOrMessageId"),
    ("schedule", "ScheduleId"),
    ("proposal", "ProposalId"),
    ("topic", "TopicName"),
    ("group", "GroupName"),
    ("external_id", "ExternalId"),
    ("service", "ServiceName"),
];

/// Cursors by path, with their schemas.
const CURSORS: [(&str, &str); 15] = [
    ("/v1/audit", "AuditId"),
    ("/v1/devices", "DeviceId"),
    ("/v1/users", "ExternalId"),
    ("/v1/groups", "GroupName"),
    ("/v1/groups/{group}/members", "MemberCursor"),
    ("/v1/topics", "TopicName"),
    ("/v1/services", "ServiceName"),
    ("/v1/schedules", "ScheduleId"),
    ("/v1/proposals", "ProposalId"),
    ("/v1/messages", "MessageId"),
    ("/v1/campaigns", "CampaignOrMessageId"),
    ("/v1/devices/{device}/deliveries", "MessageId"),
    ("/v1/messages/{message}/deliveries", "DeliveryCursor"),
    ("/v1/upstream/messages", "UpstreamId"),
    ("/v1/upstream/dead-letters", "UpstreamId"),
];

/// Batches, with the field of their items.
pub(super) const BATCHES: [(&str, &str); 3] =
    [("DeviceBatch", "devices"), ("SubscriptionBatch", "subscriptions"), ("MessageBatch", "messages")];

/// The message of a schedule.
const SCHEDULE_MESSAGE: &str = "ScheduleMessage";
/// The message of a proposal.
const PROPOSAL_MESSAGE: &str = "ProposalMessage";
/// New data of a device.
const DEVICE_REPLACEMENT: &str = "DeviceReplacement";

/// Restricts the document to the requests that the server accepts.
pub(super) fn apply(document: &mut Value) {
    if let Some(schemas) = document["components"]["schemas"].as_object_mut() {
        schemas.extend(words::schemas());
        fields().into_iter().for_each(|(name, fields)| describe_fields(schemas, name, fields));
        credentials::describe_schemas(schemas);
        describe_overrides(schemas);
        describe_target(schemas);
        BATCHES.iter().for_each(|(name, field)| describe_batch(schemas, name, field));
    }
    for (name, rule) in rules() {
        let schema = &mut document["components"]["schemas"][name];
        merge(schema, rule);
    }
    if let Some(schemas) = document["components"]["schemas"].as_object_mut() {
        let of_schedule = "The message that each occurrence of a schedule sends.";
        let scheduled = message_without(schemas, &["send_at", "dry_run"], of_schedule);
        let proposed = message_without(schemas, &["dry_run"], "The message that an approval sends.");
        let device = device_replacement(schemas);
        schemas.insert(SCHEDULE_MESSAGE.to_owned(), scheduled);
        schemas.insert(PROPOSAL_MESSAGE.to_owned(), proposed);
        schemas.insert(DEVICE_REPLACEMENT.to_owned(), device);
    }
    let replace = &mut document["paths"]["/v1/devices/{device}"]["put"]["requestBody"]["content"];
    replace["application/json"]["schema"] = reference(DEVICE_REPLACEMENT);
    let paths = document["paths"].as_object_mut().into_iter().flatten();
    for (path, item) in paths {
        let operations = item.as_object_mut().into_iter().flatten();
        operations.for_each(|(_, operation)| describe_parameters(path, operation));
    }
    let import = &mut document["paths"]["/v1/devices/import"]["post"]["requestBody"]["content"];
    import["text/csv"]["schema"] = reference("CsvDevices");
}

/// Describes that an invalid item of a batch is refused on its own, and leaves the request valid.
fn describe_batch(schemas: &mut Map<String, Value>, name: &str, field: &str) {
    let Some(items) = schemas.get_mut(name).map(|batch| &mut batch["properties"][field]["items"]) else {
        return;
    };
    *items =
        json!({"anyOf": [items.take(), {"description": "An entry that does not fit is refused by itself."}]});
}

pub(super) fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

pub(super) fn nullable(name: &str) -> Value {
    json!({"oneOf": [reference(name), {"type": "null"}]})
}

/// Schema of an optional provider, which defaults to the one of the platform.
fn provider(what: &str) -> Value {
    let usual = Platform::ALL.iter().filter_map(|platform| {
        Some(format!("{platform} means {}", stentor_providers::usual_provider(*platform)?))
    });
    let usual = usual.collect::<Vec<_>>().join(" and ");
    let mut provider = nullable("Provider");
    provider["description"] = format!("{what}; {usual} when absent.").into();
    provider["example"] = "null".into();
    provider
}

fn list(of: &str) -> Value {
    json!({"type": "array", "items": reference(of)})
}

fn service_account() -> Value {
    json!({
        "name": reference("Label"),
        "url": {
            "type": "string", "pattern": "^https?://[A-Za-z0-9._:\\[\\]-]+/?$", "maxLength": 1024,
            "description": "Address at which app servers reach this server, without a path: `https://push.example.org`.",
        },
        "scopes": {
            "type": "array", "items": {"type": "string", "enum": ["send", "register"]},
            "description": "Permissions of the account; both when absent.",
        },
    })
}

fn upstream_webhook() -> Value {
    json!({"url": reference("WebhookUrl"), "secret": nullable("WebhookSecret")})
}

fn token_target() -> Value {
    let (platform, token) = (reference("Platform"), reference("PushToken"));
    json!({"platform": platform, "provider": provider("Adapter"), "token": token})
}

/// Returns the fields of requests with specific texts or numbers.
fn fields() -> Vec<(&'static str, Value)> {
    let instant = json!({"type": ["string", "null"], "format": "date-time"});
    vec![
        ("AppRequest", json!({"name": reference("Label")})),
        (
            "KeyRequest",
            json!({"name": reference("Label"), "scopes": {
                "type": "array", "items": reference("Scope"), "minItems": 1,
            }}),
        ),
        ("ServiceAccountRequest", service_account()),
        ("UpstreamWebhookRequest", upstream_webhook()),
        (
            "DeviceRegistration",
            with_texts(json!({
                "platform": reference("Platform"), "provider": provider("Adapter that reaches it"), "token": reference("PushToken"),
                "former_token": nullable("PushToken"), "user": nullable("ExternalId"), "tags": tags("array"), "topics": {
                    "type": "array", "items": reference("TopicName"), "maxItems": limits::TOPICS_PER_DEVICE_MAX_COUNT,
                },
            })),
        ),
        (
            "DeviceChange",
            with_texts(json!({
                "token": nullable("PushToken"), "user": nullable("ExternalId"),
                "tags": {"oneOf": [tags("array"), {"type": "null"}]},
            })),
        ),
        ("TokenTarget", token_target()),
        ("ChannelRequest", json!({"storage": nullable("ChannelStorage")})),
        ("MembersRequest", json!({"users": some("ExternalId", 0), "devices": some("DeviceId", 0)})),
        (
            "ServiceRequest",
            json!({
                "kind": reference("ServiceKind"), "address": reference("ServiceAddress"),
                "description": nullable("ServiceText"), "ttl_seconds": {
                    "type": ["integer", "null"], "minimum": 1, "maximum": limits::SERVICE_TTL_MAX_SECONDS,
                },
            }),
        ),
        ("UpstreamIds", json!({"ids": some("UpstreamId", 1)})),
        ("SubscriptionRequest", json!({"devices": some("DeviceId", 1)})),
        (
            "MessageRequest",
            json!({
                "priority": reference("Priority"), "collapse_key": nullable("CollapseKey"), "send_at": instant,
                "ttl_seconds": {
                    "type": ["integer", "null"], "format": "int64", "minimum": 0, "maximum": limits::TTL_MAX_SECONDS,
                },
                "data": {
                    "type": "object", "additionalProperties": {"type": "string"},
                    "maxProperties": limits::DATA_ENTRIES_MAX_COUNT,
                },
            }),
        ),
        (
            "ScheduleRequest",
            json!({
                "name": nullable("Label"), "cron": reference("Cron"), "time_zone": reference("TimeZone"),
                "until": instant, "catch_up": reference("CatchUp"), "message": reference(SCHEDULE_MESSAGE),
            }),
        ),
        ("ProposalRequest", json!({"message": reference(PROPOSAL_MESSAGE)})),
        // An object or a word: a client has a single type for both.
        (
            "MessageContent",
            json!({"target": {"description": "As in the request: an object, or the word `everyone`."}}),
        ),
    ]
}

/// Adds the optional texts of a device.
fn with_texts(mut fields: Value) -> Value {
    DEVICE_TEXTS.iter().for_each(|text| fields[text.name] = nullable(text.rule.name));
    fields
}

fn tags(kind: &str) -> Value {
    json!({"type": kind, "items": reference("Tag"), "maxItems": limits::TAGS_PER_DEVICE_MAX_COUNT})
}

fn some(of: &str, least: usize) -> Value {
    let mut some = list(of);
    some["minItems"] = least.into();
    some["maxItems"] = limits::TARGET_DEVICES_MAX_COUNT.into();
    some
}

/// Returns the rules between the fields of a request.
fn rules() -> Vec<(&'static str, Value)> {
    vec![
        (
            "MembersRequest",
            never(json!({"properties": {"users": {"maxItems": 0}, "devices": {"maxItems": 0}}})),
        ),
        ("MessageRequest", never(json!({"properties": no_content()}))),
    ]
}

/// Excludes the values that a schema describes. Client generators ignore these keywords; from `anyOf` and `not` beside properties, some
/// generate types without the properties.
pub(super) fn never(described: Value) -> Value {
    json!({"if": described, "then": {"not": {}}})
}

/// Returns the schema of a message without some fields.
fn message_without(schemas: &Map<String, Value>, absent: &[&str], description: &str) -> Value {
    let mut message = schemas.get("MessageRequest").cloned().unwrap_or_default();
    message["description"] = description.into();
    if let Some(fields) = message["properties"].as_object_mut() {
        fields.retain(|name, _| !absent.contains(&name.as_str()));
    }
    message
}

/// Returns the schema of new data of a device, which the path names: only a registration is found by a former token.
fn device_replacement(schemas: &Map<String, Value>) -> Value {
    let mut device = schemas.get("DeviceRegistration").cloned().unwrap_or_default();
    device["description"] = "New data of a device; absent fields are cleared.".into();
    merge(
        &mut device,
        never(json!({"required": ["former_token"], "properties": {"former_token": {"type": "string"}}})),
    );
    device
}

/// Describes the target: an object with one property, or the word for all devices. Each form has a name, which clients use for its type.
fn describe_target(schemas: &mut Map<String, Value>) {
    let ways = [
        ("device", reference("DeviceId"), "One device."),
        ("devices", some("DeviceId", 1), "1 to 1,000 devices."),
        ("token", reference("TokenTarget"), "One push token, registered or not."),
        ("user", reference("ExternalId"), "All devices of a person."),
        ("group", reference("GroupName"), "All devices of a group."),
        ("topic", reference("TopicName"), "All devices subscribed to a topic."),
        ("condition", reference("Condition"), "All devices whose topics fulfil the condition."),
    ];
    let mut forms = Vec::new();
    for (field, schema, description) in ways {
        let name = format!("Target{}{}", field[..1].to_uppercase(), &field[1..]);
        forms.push(reference(&name));
        let way = json!({
            "type": "object", "required": [field], "properties": {field: schema}, "additionalProperties": false,
            "description": description,
        });
        schemas.insert(name, way);
    }
    forms.push(json!({"type": "string", "enum": ["everyone"], "description": "All devices of the app."}));
    let target = json!({"description": "The addressee: exactly one of these.", "oneOf": forms});
    schemas.insert("Target".into(), target);
}

/// Replaces the schemas of fields and keeps their descriptions.
fn describe_fields(schemas: &mut Map<String, Value>, name: &str, fields: Value) {
    let Some(known) = schemas.get_mut(name).and_then(|schema| schema["properties"].as_object_mut()) else {
        return;
    };
    let Value::Object(fields) = fields else { return };
    for (field, mut exact) in fields {
        let before = known.get(&field).and_then(|before| before.get("description"));
        if let Some(description) = before.filter(|_| exact.get("description").is_none()) {
            exact["description"] = description.clone();
        }
        known.insert(field, exact);
    }
}

/// Adds the fields of a message for single push services.
fn describe_overrides(schemas: &mut Map<String, Value>) {
    for overrides in stentor_providers::all().filter_map(|adapter| adapter.overrides.as_ref()) {
        let field = overrides.field;
        let value = json!({"type": ["object", "null"]});
        schemas["MessageContent"]["properties"][field] = value.clone();
        schemas["MessageRequest"]["properties"][field] = value;
        schemas["MessageRequest"]["properties"][field]["description"] = overrides.about.into();
    }
}

/// Returns the schema of a message without content, which is invalid.
fn no_content() -> Value {
    let overrides = stentor_providers::all().filter_map(Descriptor::override_field);
    let absent = overrides.chain(["notification"]).map(|field| (field.to_owned(), json!({"type": "null"})));
    let mut none: Map<_, _> = absent.collect();
    none.insert("data".to_owned(), json!({"maxProperties": 0}));
    none.into()
}

fn describe_parameters(path: &str, operation: &mut Value) {
    for parameter in operation.get_mut("parameters").and_then(Value::as_array_mut).into_iter().flatten() {
        let name = parameter["name"].as_str().unwrap_or_default();
        let known = match parameter["in"].as_str() {
            Some("path") => PATH_PARAMETERS.iter().find(|(known, _)| *known == name),
            Some("query") if matches!(name, "after" | "before") => {
                CURSORS.iter().find(|(known, _)| *known == path)
            }
            _ => None,
        };
        let schema = match (known, name) {
            // In a path, a percent sign before two hex digits is an escape, so that a name with such a sequence would denote another group.
            (Some((_, "GroupName")), _) if parameter["in"] == "path" => {
                json!({"type": "string", "minLength": 1, "maxLength": GroupName::RULE.max_chars,
                    "pattern": "^([A-Za-z0-9_.~:-]|%(?![0-9A-Fa-f]{2}))+$"})
            }
            (Some((_, schema)), _) => reference(schema),
            (None, "app") => reference("AppId"),
            (None, "action") => json!({"type": "string", "enum": audit_actions()}),
            (None, "since") => json!({"type": "string", "format": "date-time"}),
            (None, "provider") => reference("Provider"),
            (None, "user") => reference("ExternalId"),
            (None, "kind") => reference("ServiceKind"),
            (None, "tag") => reference("Tag"),
            (None, "state") if path == "/v1/devices" => reference("DeviceState"),
            (None, "state") => reference("DeliveryState"),
            (None, "address") => json!({"type": "string", "enum": token_kinds()}),
            (None, "limit") => json!({"type": "integer", "minimum": 1, "maximum": LIMIT_MAX}),
            (None, "format") => json!({"type": "string", "enum": ["ndjson", "csv"]}),
            _ => continue,
        };
        parameter["schema"] = schema;
    }
}

/// Lists the words for the kinds of addresses that push services have.
fn token_kinds() -> Vec<&'static str> {
    let kinds = stentor_providers::all().filter_map(|adapter| adapter.token_kinds.as_ref());
    kinds.flat_map(|kinds| [kinds.newer, kinds.older]).collect()
}

fn audit_actions() -> Vec<&'static str> {
    AuditAction::ALL.iter().map(|action| action.as_str()).collect()
}

fn merge(into: &mut Value, more: Value) {
    if let (Some(into), Value::Object(more)) = (into.as_object_mut(), more) {
        into.extend(more);
    }
}
