//! Requests of gorush.

use serde::Deserialize;
use serde_json::{Map, Value};
use stentor_core::device::{Platform, ProviderKind};

use crate::contract::messages::TargetRequest;
use crate::contract::{ErrorCode, Problem, ServiceResult};
use crate::front::sending::DefaultRoute;

/// Most notifications of one request: gorush's default of `max_notification`.
const NOTIFICATIONS_MAX_COUNT: usize = 100;
/// Most tokens of one notification.
const TOKENS_MAX_COUNT: usize = 1_000;
/// Most tokens of all notifications together: each is a message of its own.
const ALL_TOKENS_MAX_COUNT: usize = 10_000;
const IOS: u8 = 1;
const ANDROID: u8 = 2;

/// A gorush request; unknown fields are ignored, as in the original.
#[derive(Deserialize)]
pub(super) struct PushRequest {
    #[serde(default)]
    notifications: Option<Vec<GorushNotification>>,
}

/// One notification. Fields for Huawei's service and for browsers are ignored.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct GorushNotification {
    pub(super) notif_id: String,
    to: String,
    topic: String,
    tokens: Vec<String>,
    /// A synonym of `tokens`.
    devices: Vec<String>,
    platform: u8,
    pub(super) message: String,
    pub(super) title: String,
    pub(super) image: String,
    pub(super) priority: String,
    pub(super) content_available: bool,
    pub(super) mutable_content: bool,
    pub(super) sound: Value,
    pub(super) data: Map<String, Value>,
    pub(super) notification: Map<String, Value>,
    pub(super) android: Map<String, Value>,
    pub(super) apns: Map<String, Value>,
    condition: String,
    pub(super) collapse_key: Option<String>,
    pub(super) time_to_live: Option<u64>,
    pub(super) restricted_package_name: String,
    pub(super) dry_run: bool,
    pub(super) expiration: Option<i64>,
    pub(super) collapse_id: Option<String>,
    pub(super) push_type: String,
    pub(super) badge: Option<i64>,
    pub(super) category: String,
    #[serde(rename = "thread-id")]
    pub(super) thread_id: String,
    #[serde(rename = "url-args")]
    pub(super) url_args: Vec<String>,
    pub(super) alert: Map<String, Value>,
    #[serde(rename = "name")]
    pub(super) sound_name: String,
    #[serde(rename = "volume")]
    pub(super) sound_volume: f64,
    pub(super) interruption_level: String,
    /// Fields of a live activity.
    #[serde(rename = "content-state")]
    pub(super) content_state: Map<String, Value>,
    pub(super) event: String,
    pub(super) timestamp: Option<i64>,
    #[serde(rename = "stale-date")]
    pub(super) stale_date: Option<i64>,
    #[serde(rename = "dismissal-date")]
    pub(super) dismissal_date: Option<i64>,
}

impl PushRequest {
    /// Validates the request as a whole.
    pub(super) fn checked(self) -> ServiceResult<Vec<GorushNotification>> {
        let notifications = self.notifications.ok_or_else(|| refused("Missing notifications field."))?;
        let count = notifications.len();
        if count == 0 {
            return Err(refused("Notifications field is empty."));
        }
        if count > NOTIFICATIONS_MAX_COUNT {
            let text = format!("Number of notifications({count}) over limit({NOTIFICATIONS_MAX_COUNT})");
            return Err(refused(&text));
        }
        let tokens: usize = notifications.iter().map(GorushNotification::token_count).sum();
        if tokens > ALL_TOKENS_MAX_COUNT {
            return Err(refused(&format!("Number of tokens({tokens}) over limit({ALL_TOKENS_MAX_COUNT})")));
        }
        notifications.iter().enumerate().try_for_each(|(index, one)| one.check(index))?;
        Ok(notifications)
    }
}

impl GorushNotification {
    fn check(&self, index: usize) -> ServiceResult<()> {
        let at = |problem: Problem| problem.at(format!("notifications[{index}]"));
        self.default_route().map_err(at)?;
        if self.token_count() == 0 && !self.is_for_topic() {
            return Err(at(refused("tokens must not be nil or empty")));
        }
        if self.token_count() > TOKENS_MAX_COUNT {
            let text = format!("tokens must not contain more than {TOKENS_MAX_COUNT} elements");
            return Err(at(refused(&text)));
        }
        Ok(())
    }

    fn token_count(&self) -> usize {
        self.tokens.len() + self.devices.len() + usize::from(!self.to.is_empty())
    }

    /// Removes and returns all tokens.
    pub(super) fn all_tokens(&mut self) -> Vec<String> {
        let mut tokens = std::mem::take(&mut self.tokens);
        tokens.append(&mut self.devices);
        tokens.extend(Some(std::mem::take(&mut self.to)).filter(|to| !to.is_empty()));
        tokens
    }

    /// Returns the named audiences and their names.
    pub(super) fn audience(&self) -> Vec<(String, TargetRequest)> {
        let mut found = Vec::new();
        if self.is_for_topic() && !self.topic.is_empty() {
            let topic = self.topic.trim_start_matches("/topics/").to_owned();
            found.push((self.topic.clone(), TargetRequest::Topic(topic)));
        }
        if self.is_for_topic() && !self.condition.is_empty() {
            found.push((self.condition.clone(), TargetRequest::Condition(self.condition.clone())));
        }
        found
    }

    /// Returns true if the topic is an audience, as on Android; on iOS it is the name of the app at its push service.
    fn is_for_topic(&self) -> bool {
        let names_none = self.topic.is_empty() && self.condition.is_empty();
        !self.is_ios() && !names_none
    }

    /// Returns the name of the app at its push service.
    pub(super) fn apns_topic(&self) -> Option<&str> {
        Some(self.topic.as_str()).filter(|topic| self.is_ios() && !topic.is_empty())
    }

    pub(super) const fn is_ios(&self) -> bool {
        self.platform == IOS
    }

    pub(super) const fn platform_word(&self) -> &'static str {
        if self.is_ios() { "ios" } else { "android" }
    }

    /// Returns the route of unregistered tokens.
    pub(super) fn default_route(&self) -> ServiceResult<DefaultRoute> {
        match self.platform {
            IOS => Ok(DefaultRoute { platform: Platform::Apple, provider: ProviderKind::Apns }),
            ANDROID => Ok(DefaultRoute { platform: Platform::Android, provider: ProviderKind::Fcm }),
            other => Err(refused(&format!("platform {other} is not served here; 1 is iOS, 2 is Android"))),
        }
    }
}

fn refused(text: &str) -> Problem {
    Problem::new(ErrorCode::InvalidRequest, text.to_owned())
}
