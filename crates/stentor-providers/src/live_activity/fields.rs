//! The fields of a message for Live Activities.

use serde_json::{Map, Value};
use stentor_core::error::Invalid;
use stentor_core::message::Content;

use crate::json;

/// Longest name of an activity.
pub const ACTIVITY_MAX_CHARS: usize = 48;

/// A field: its name, the events that may have it and those that must have it, its form, and the form in words.
struct Field {
    name: &'static str,
    may: &'static [&'static str],
    must: &'static [&'static str],
    fits: fn(&Value) -> bool,
    form: &'static str,
}

const START: &[&str] = &["start"];
const RUNNING: &[&str] = &["update", "end"];
const SHOWN: &[&str] = &["start", "update"];
const ALL: &[&str] = &["start", "update", "end"];
const NONE: &[&str] = &[];

const FIELDS: &[Field] = &[
    Field { name: "event", may: ALL, must: ALL, fits: is_event, form: "`start`, `update` or `end`" },
    Field {
        name: "activity",
        may: RUNNING,
        must: RUNNING,
        fits: is_name,
        form: "1 to 48 printable characters, without a space at either end",
    },
    Field { name: "content_state", may: ALL, must: SHOWN, fits: Value::is_object, form: "an object" },
    Field { name: "attributes_type", may: START, must: START, fits: is_text, form: "the name of a type" },
    Field { name: "attributes", may: START, must: START, fits: Value::is_object, form: "an object" },
    Field { name: "stale_date", may: SHOWN, must: NONE, fits: Value::is_u64, form: "seconds since 1970" },
    Field {
        name: "dismissal_date",
        may: &["end"],
        must: NONE,
        fits: Value::is_u64,
        form: "seconds since 1970",
    },
    Field { name: "relevance_score", may: ALL, must: NONE, fits: Value::is_number, form: "a number" },
    Field {
        name: "input_push_token",
        may: START,
        must: NONE,
        fits: Value::is_boolean,
        form: "true or false",
    },
    Field { name: "input_push_channel", may: START, must: NONE, fits: is_text, form: "the id of a channel" },
    Field { name: "sound", may: ALL, must: NONE, fits: is_text, form: "the name of a sound" },
    Field { name: "stored", may: RUNNING, must: NONE, fits: Value::is_boolean, form: "true or false" },
    Field { name: "timestamp", may: RUNNING, must: NONE, fits: Value::is_u64, form: "seconds since 1970" },
];

/// Checks the fields, and the other parts of a message that has them.
pub(crate) fn check(content: &Content, fields: &Map<String, Value>) -> Result<(), Invalid> {
    let names: Vec<_> = FIELDS.iter().map(|field| field.name).collect();
    json::only(fields, &names, "live_activity")?;
    let event = fields.get("event").and_then(Value::as_str).unwrap_or_default();
    FIELDS.iter().try_for_each(|field| field.check(fields.get(field.name), event))?;
    if fields.get("input_push_token") == Some(&Value::Bool(true)) && fields.contains_key("input_push_channel")
    {
        return Err(invalid("input_push_channel", "a start has either this or `input_push_token`"));
    }
    check_others(content, fields, event)
}

impl Field {
    fn check(&self, value: Option<&Value>, event: &str) -> Result<(), Invalid> {
        match value {
            None if self.must.contains(&event) || self.name == "event" => {
                Err(invalid(self.name, &format!("must be given: {}", self.form)))
            }
            None => Ok(()),
            Some(value) if !(self.fits)(value) => Err(invalid(self.name, &format!("must be {}", self.form))),
            Some(_) if !self.may.contains(&event) => {
                Err(invalid(self.name, &format!("only the events {} have it", self.may.join(", "))))
            }
            Some(_) => Ok(()),
        }
    }
}

/// Checks the parts of the message beside the fields.
fn check_others(content: &Content, fields: &Map<String, Value>, event: &str) -> Result<(), Invalid> {
    if content.overrides.len() > 1 {
        return Err(Invalid::new(
            "live_activity",
            "such a message reaches Live Activities alone: leave the fields of other push services out",
        ));
    }
    if !content.data.is_empty() {
        return Err(Invalid::new("data", "a Live Activity gets `live_activity.content_state` instead"));
    }
    match &content.notification {
        None if event == "start" => {
            Err(Invalid::new("notification", "must be given: iOS starts no Live Activity without an alert"))
        }
        None if fields.contains_key("sound") => {
            Err(invalid("sound", "only an alert has a sound: give a notification"))
        }
        Some(notification) if notification.image.is_some() => {
            Err(Invalid::new("notification.image", "the alert of a Live Activity shows no picture"))
        }
        _ => Ok(()),
    }
}

fn invalid(name: &str, problem: &str) -> Invalid {
    Invalid::new(format!("live_activity.{name}"), problem)
}

fn is_event(value: &Value) -> bool {
    value.as_str().is_some_and(|event| ALL.contains(&event))
}

fn is_name(value: &Value) -> bool {
    value.as_str().is_some_and(|name| {
        let is_short = (1..=ACTIVITY_MAX_CHARS).contains(&name.chars().count());
        is_short && name.trim() == name && !name.chars().any(char::is_control)
    })
}

fn is_text(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.is_empty())
}
