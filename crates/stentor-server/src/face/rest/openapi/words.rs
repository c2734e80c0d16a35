//! Exact patterns of the API's texts, so that a request generator produces only valid ones.
//!
//! Patterns are limited to the syntax that ECMA 262, Python, Java, Go and Rust share.

use serde_json::{Map, Value, json};
use stentor_core::channel::ChannelStorage;
use stentor_core::device::{DEVICE_TEXTS, DEVICE_TEXTS_COUNT, PushToken, with_device_texts};
use stentor_core::limits;
use stentor_core::message::Priority;
use stentor_core::name::{
    ChannelId, CollapseKey, ExternalId, GroupName, Label, ServiceAddress, ServiceKind, ServiceName,
    ServiceText, Tag, TextRule, TopicName,
};
use stentor_core::schedule::CatchUp;
use stentor_core::word::Word;
use stentor_core::{
    app::Scope, delivery::ShownState, device::DeviceState, device::Platform, device::ProviderKind,
};

/// Pattern of an id after its prefix: 63 bits, five per character.
const ID_DIGITS: &str = "[0-7][0-9a-hjkmnp-tv-z]{12}";
/// Pattern of collapse keys: printable text without a space at either end, because a push service carries a key in a header.
const TRIMMED: &str = "^[^\\x00-\\x20\\x7f-\\x9f]([^\\x00-\\x1f\\x7f-\\x9f]*[^\\x00-\\x20\\x7f-\\x9f])?$";
/// Example of an id after its prefix.
const EXAMPLE_ID: &str = "01kb2d3v00000";

/// The ids, with the word in front of each.
const IDS: [(&str, &str); 9] = [
    ("AuditId", "aud"),
    ("UpstreamId", "ups"),
    ("AppId", "app"),
    ("KeyId", "key"),
    ("DeviceId", "dev"),
    ("MessageId", "msg"),
    ("CampaignId", "cmp"),
    ("ScheduleId", "sch"),
    ("ProposalId", "prp"),
];

/// Returns the schemas of all texts under their names.
pub(super) fn schemas() -> Map<String, Value> {
    let (mut all, user) = (Map::new(), ExternalId::RULE);
    all.extend(IDS.map(|(name, prefix)| (name.to_owned(), id(prefix))));
    all.insert("CampaignOrMessageId".into(), json!({
        "type": "string", "pattern": format!("^(cmp|msg)_{ID_DIGITS}$"), "example": format!("cmp_{EXAMPLE_ID}"),
        "description": "A campaign, by its own id or by that of its message.",
    }));
    all.insert("MemberCursor".into(), json!({
        "type": "string", "pattern": format!("^(user:{}{{1,{}}}|device:dev_{ID_DIGITS})$", user.alphabet.class(), user.max_chars),
        "description": "A member, as `next` gives it.",
    }));
    all.insert(
        "DeliveryCursor".into(),
        json!({
            "type": "string", "pattern": format!("^chk_{ID_DIGITS}\\.[0-9]{{1,9}}$"),
            "description": "A place among the deliveries of a message, as `next` gives it.",
        }),
    );
    all.insert("CsvDevices".into(), json!({
        "type": "string", "pattern": csv(),
        "description": "A header with `platform`, `token` and any of the others, in any order, then one device a line.",
    }));
    all.extend(names());
    all.insert("Platform".into(), platform());
    all.extend([
        choice(
            "Provider",
            ProviderKind::WORDS,
            "Adapter that reaches a device; `null` sends nothing. Capitals do not matter.",
        ),
        choice(
            "DeviceState",
            DeviceState::WORDS,
            "State of a device; `retired` means that its token is dead. Capitals do not matter.",
        ),
        choice("DeliveryState", ShownState::WORDS, "State of a delivery. Capitals do not matter."),
        choice("Priority", Priority::WORDS, "Urgency for the device. Capitals do not matter."),
        choice(
            "ChannelStorage",
            ChannelStorage::WORDS,
            "Messages that a channel keeps. Capitals do not matter.",
        ),
        choice("Scope", Scope::WORDS, "Permission of a key. Capitals do not matter."),
        choice("CatchUp", CatchUp::WORDS, "Treatment of missed occurrences. Capitals do not matter."),
    ]);
    all.extend(credentials());
    all.insert("TimeZone".into(), json!({
        "type": "string", "pattern": time_zones(), "example": "Europe/Rome",
        "description": "A time zone of the IANA database; newer names are taken as soon as the server's database has them.",
    }));
    all.insert("Cron".into(), json!({
        "type": "string", "pattern": super::patterns::cron(), "example": "0 9 * * 1-5",
        "description": "Five fields: minute, hour, day of month, month, day of week. An expression that never fires (31 February) is refused.",
    }));
    all.insert("Condition".into(), json!({
        "type": "string", "maxLength": limits::CONDITION_MAX_BYTES, "pattern": super::patterns::condition(),
        "example": "'news' in topics && !('muted' in topics)",
        "description": "An expression over the topics of a device: `'a' in topics`, `&&`, `||`, `!` and parentheses, at most 16 topics. \
                        The pattern covers the usual forms; deeper parentheses are accepted as well.",
    }));
    all
}

fn id(prefix: &str) -> Value {
    json!({
        "type": "string",
        "pattern": format!("^{prefix}_{ID_DIGITS}$"),
        "example": format!("{prefix}_{EXAMPLE_ID}"),
    })
}

/// The texts that have a rule in the core, beside those of a device.
pub(super) const RULES: [TextRule; 12] = [
    ChannelId::RULE,
    ExternalId::RULE,
    Label::RULE,
    GroupName::RULE,
    TopicName::RULE,
    Tag::RULE,
    CollapseKey::RULE,
    ServiceName::RULE,
    ServiceKind::RULE,
    ServiceAddress::RULE,
    ServiceText::RULE,
    PushToken::RULE,
];

fn names() -> impl Iterator<Item = (String, Value)> {
    RULES.into_iter().chain(DEVICE_TEXTS.map(|text| text.rule)).map(|rule| {
        let TextRule { name, about, max_chars, example, .. } = rule;
        let pattern = if name == CollapseKey::RULE.name { TRIMMED.to_owned() } else { rule.pattern() };
        let schema = json!({
            "type": "string", "pattern": pattern, "minLength": 1, "maxLength": max_chars, "description": about,
            "example": example,
        });
        (name.to_owned(), schema)
    })
}

/// Returns the texts of credentials.
fn credentials() -> [(String, Value); 6] {
    let text = |name: &str, pattern: &str, description: &str| {
        (name.to_owned(), json!({"type": "string", "pattern": pattern, "description": description}))
    };
    [
        text("NotBlank", "\\S", "Anything but spaces."),
        text(
            "Url",
            "^https?://[a-z][a-z0-9]*(\\.[a-z][a-z0-9]*)*(:[1-9][0-9]{0,3})?(/[a-z0-9]+)*$",
            "An address.",
        ),
        text(
            "Endpoint",
            "^https?://[a-z][a-z0-9]*(\\.[a-z][a-z0-9]*)*(:[1-9][0-9]{0,3})?/?$",
            "Scheme, host and port of a server; addresses of IP and other names of hosts are taken as well.",
        ),
        text(
            "WebhookUrl",
            "^https?://([A-Za-z0-9_-]+\\.)*[A-Za-z][A-Za-z0-9_-]*(:([0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}))?\
            ([/?][A-Za-z0-9._~:/?@!$&'()*+,;=%-]*)?$",
            "An address without user, password and fragment; the host may also be an IP address.",
        ),
        text(
            "WebhookSecret",
            "^whsec_([A-Za-z0-9+/]{4}){8,20}$",
            "`whsec_` and 24 to 64 bytes in base64; their padding is taken as well.",
        ),
        text(
            "Pem",
            "\\S",
            "A key or certificates in PEM. Unreadable text is refused with `credential_unusable`.",
        ),
    ]
}

/// Returns the pattern of CSV: a header with columns in the order of the reference, then any lines.
fn csv() -> String {
    let optional: [_; 4 + DEVICE_TEXTS_COUNT] =
        with_device_texts(&["former_token", "user"], &["tags", "topics"]);
    let optional = optional.map(|name| format!("(,{name})?")).concat();
    format!("^platform(,provider)?,token{optional}(\\n[ -~]*)*$")
}

/// Returns the schema of a platform. Its example goes with the example of a token: not every token is one of Apple's.
fn platform() -> Value {
    let (_, mut platform) = choice(
        "Platform",
        Platform::WORDS,
        "System of a device; all names of Apple's mean `apple`, which answers say. Capitals do not matter.",
    );
    platform["example"] = "android".into();
    platform
}

fn choice(name: &str, words: &[&str], description: &str) -> (String, Value) {
    (name.to_owned(), json!({"type": "string", "enum": words, "description": description}))
}

/// Returns the pattern of the time zones in the database compiled into the server. It is not an enumeration: as identifiers in a program,
/// zones such as `GMT+0` and `GMT-0` would coincide.
fn time_zones() -> String {
    let database = jiff::tz::TimeZoneDatabase::bundled();
    let mut names: Vec<_> = database.available().map(|name| name.to_string().replace('+', "\\+")).collect();
    names.sort();
    format!("^({})$", names.join("|"))
}
