//! Topic memberships, and the two interfaces that change them: the v1 resource and the older iid service.

use super::condition::FcmCondition;
use super::message::{is_token, is_topic};
use super::oauth::percent_decode;
use crate::clock::now_ms;
use crate::json::JsonNode;
use crate::observer::token_hash;
use http::{Method, StatusCode};
use parking_lot::RwLock;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};

const MAX_TOPICS_PER_DEVICE: usize = 2000;
const MAX_TOKENS_PER_BATCH: usize = 1000;
const DEFAULT_PAGE_SIZE: usize = 1000;
const MAX_PAGE_SIZE: usize = 2000;

/// The memberships of one project's devices: per token, its topics and since when (milliseconds since 1970).
#[derive(Default)]
pub(crate) struct Topics(RwLock<HashMap<String, BTreeMap<String, u64>>>);

/// A failure of the v1 interface: the error code and its description.
pub(crate) type TopicRefusal = (&'static str, String);

/// The result of adding a membership.
enum Added {
    New,
    Known,
    TooMany,
}

impl Topics {
    fn add(&self, token: &str, topic: &str) -> Added {
        let mut tokens = self.0.write();
        let topics = tokens.entry(token.to_owned()).or_default();
        if topics.contains_key(topic) {
            return Added::Known;
        }
        if topics.len() >= MAX_TOPICS_PER_DEVICE {
            return Added::TooMany;
        }
        topics.insert(topic.to_owned(), now_ms());
        Added::New
    }

    fn remove(&self, token: &str, topic: &str) -> bool {
        let mut tokens = self.0.write();
        tokens.get_mut(token).is_some_and(|topics| topics.remove(topic).is_some())
    }

    fn of(&self, token: &str) -> BTreeMap<String, u64> {
        let tokens = self.0.read();
        tokens.get(token).cloned().unwrap_or_default()
    }

    /// Returns the hashes of all tokens for which a condition holds.
    pub(crate) fn devices_where(&self, condition: &FcmCondition) -> Vec<u64> {
        self.tokens_where(condition).iter().map(|token| token_hash(token.as_bytes())).collect()
    }

    /// Returns all tokens for which a condition holds.
    pub(crate) fn tokens_where(&self, condition: &FcmCondition) -> Vec<String> {
        let tokens = self.0.read();
        let holds = |topics: &BTreeMap<String, u64>| condition.holds(&|topic| topics.contains_key(topic));
        let matching = tokens.iter().filter(|(_, topics)| holds(topics));
        matching.map(|(token, _)| token.clone()).collect()
    }

    /// Answers a request on `registrations/{token}/topicSubscriptions[/{topic}]`.
    pub(crate) fn resource(
        &self,
        method: &Method,
        parent: &Parent,
        topic: Option<&str>,
        query: &Query,
    ) -> Result<Value, TopicRefusal> {
        match (method.as_str(), topic) {
            ("GET", None) => Ok(self.list(parent, query)),
            ("POST", None) => {
                let topic = query.get("topicName").unwrap_or_default();
                self.create(parent, valid_topic(topic)?)
            }
            ("GET", Some(topic)) => self.get(parent, topic),
            ("PATCH", Some(topic)) if query.is_true("allowMissing") => {
                self.create(parent, valid_topic(topic)?).or_else(|_| self.get(parent, topic))
            }
            ("PATCH", Some(topic)) => self.get(parent, topic),
            ("DELETE", Some(topic)) => {
                if self.remove(&parent.token, topic) || query.is_true("allowMissing") {
                    Ok(json!({}))
                } else {
                    Err(missing())
                }
            }
            _ => Err(("NOT_FOUND", "no such method".to_owned())),
        }
    }

    fn create(&self, parent: &Parent, topic: &str) -> Result<Value, TopicRefusal> {
        match self.add(&parent.token, topic) {
            Added::New => Ok(parent.subscription(topic)),
            Added::Known => Err(("ALREADY_EXISTS", "already subscribed".to_owned())),
            Added::TooMany => Err(("INVALID_ARGUMENT", format!("more than {MAX_TOPICS_PER_DEVICE} topics"))),
        }
    }

    fn get(&self, parent: &Parent, topic: &str) -> Result<Value, TopicRefusal> {
        let topics = self.of(&parent.token);
        topics.contains_key(topic).then(|| parent.subscription(topic)).ok_or_else(missing)
    }

    fn list(&self, parent: &Parent, query: &Query) -> Value {
        let size = query.get("pageSize").and_then(|size| size.parse().ok()).filter(|size| *size > 0);
        let size = size.unwrap_or(DEFAULT_PAGE_SIZE).min(MAX_PAGE_SIZE);
        let after = query.get("pageToken").unwrap_or_default();
        let topics = self.of(&parent.token);
        let mut rest = topics.into_keys().filter(|topic| topic.as_str() > after);
        let page: Vec<String> = rest.by_ref().take(size).collect();
        // One more entry is looked up, so that a next page is announced only if it exists.
        let more = rest.next().is_some();
        let subscriptions: Vec<Value> = page.iter().map(|topic| parent.subscription(topic)).collect();
        let mut list = json!({ "topicSubscriptions": subscriptions });
        if let (true, Some(last)) = (more, page.last()) {
            list["nextPageToken"] = json!(last);
        }
        list
    }

    /// Handles `batchAdd` and `batchRemove`. `is_live` returns true for tokens that exist.
    pub(crate) fn batch(
        &self,
        add: bool,
        body: &[u8],
        is_live: impl Fn(&str) -> bool,
    ) -> (StatusCode, Value) {
        let bad = |reason: &str| (StatusCode::BAD_REQUEST, json!({ "error": reason }));
        let Some(request) = JsonNode::parse(body) else { return bad("InvalidJson") };
        let topic = request.field("to").and_then(JsonNode::text).and_then(|to| to.strip_prefix("/topics/"));
        let Some(topic) = topic.filter(|topic| is_topic(topic)) else { return bad("InvalidTopicName") };
        let Some(JsonNode::List(tokens)) = request.field("registrationTokens") else {
            return bad("MissingRegistrationTokens");
        };
        if tokens.is_empty() || tokens.len() > MAX_TOKENS_PER_BATCH {
            return bad("InvalidNumberOfRegistrationTokens");
        }
        let results: Vec<Value> =
            tokens.iter().map(|token| self.batch_one(add, topic, token.text(), &is_live)).collect();
        (StatusCode::OK, json!({ "results": results }))
    }

    fn batch_one(
        &self,
        add: bool,
        topic: &str,
        token: Option<&str>,
        is_live: &impl Fn(&str) -> bool,
    ) -> Value {
        let Some(token) = token.filter(|token| is_token(token)) else {
            return json!({"error": "INVALID_ARGUMENT"});
        };
        if !is_live(token) {
            return json!({"error": "NOT_FOUND"});
        }
        if !add {
            // The older service returns the same result for a token that was not subscribed.
            self.remove(token, topic);
            return json!({});
        }
        match self.add(token, topic) {
            Added::New | Added::Known => json!({}),
            Added::TooMany => json!({"error": "TOO_MANY_TOPICS"}),
        }
    }

    /// Answers `iid/info/{token}`.
    pub(crate) fn info(&self, token: &str, project: &str, details: bool) -> Value {
        let mut info = json!({
            "application": "org.example.emulated",
            "authorizedEntity": project,
            "platform": "ANDROID",
        });
        if details {
            let topics = self.of(token).into_iter();
            let topics: serde_json::Map<String, Value> =
                topics.map(|(topic, since_ms)| (topic, json!({"addDate": date(since_ms)}))).collect();
            info["rel"] = json!({ "topics": topics });
        }
        info
    }
}

/// The parent registration of subscriptions.
pub(crate) struct Parent {
    pub(crate) project: String,
    pub(crate) token: String,
}

impl Parent {
    fn subscription(&self, topic: &str) -> Value {
        let Self { project, token } = self;
        json!({"name": format!("projects/{project}/registrations/{token}/topicSubscriptions/{topic}")})
    }
}

/// The parameters of a request; of two equal names the last wins.
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(query: Option<&str>) -> Self {
        let decode = |text: &str| percent_decode(text.as_bytes(), true).unwrap_or_default();
        let pairs = query.unwrap_or_default().split('&');
        Self(
            pairs
                .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
                .map(|(key, value)| (decode(key), decode(value)))
                .collect(),
        )
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let mut pairs = self.0.iter().rev();
        pairs.find(|(key, _)| crate::json::is_name(key, name)).map(|(_, value)| value.as_str())
    }

    pub(crate) fn is_true(&self, name: &str) -> bool {
        self.get(name) == Some("true")
    }
}

fn valid_topic(topic: &str) -> Result<&str, TopicRefusal> {
    if is_topic(topic) { Ok(topic) } else { Err(("INVALID_ARGUMENT", "not a valid topic name".to_owned())) }
}

fn missing() -> TopicRefusal {
    ("NOT_FOUND", "not subscribed".to_owned())
}

/// Writes the day of an instant as YYYY-MM-DD (days since 1970 into the proleptic Gregorian calendar).
fn date(since_ms: u64) -> String {
    let mut days = since_ms / 86_400_000;
    let mut year = 1970;
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 1;
    for length in lengths {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    format!("{year:04}-{month:02}-{:02}", days + 1)
}
