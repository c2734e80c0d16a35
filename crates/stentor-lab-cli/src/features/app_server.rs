//! An app server that sends through the HTTP API of each service.

use anyhow::{Context, ensure};
use reqwest::header::{AUTHORIZATION, HeaderMap};
use reqwest::{Method, StatusCode};
use serde_json::{Map, Value, json};

use super::PushServiceFront;
use super::scene::{FeatureScene, text};
use stentor_stage::client::segment;

/// A message, independent of the API of a service.
#[derive(Clone, Copy, Default)]
pub(super) struct FeatureMessage<'a> {
    pub(super) title: Option<&'a str>,
    pub(super) mark: Option<&'a str>,
    pub(super) collapse_key: Option<&'a str>,
    pub(super) ttl_seconds: Option<u32>,
    pub(super) is_high: Option<bool>,
}

/// The target of a message.
#[derive(Clone, Copy)]
pub(super) enum FeatureTarget<'a> {
    /// A device, or a device group by its key.
    Token(&'a str),
    Topic(&'a str),
}

/// An answer of a service.
pub(super) struct ServiceAnswer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Value,
}

impl<'a> FeatureMessage<'a> {
    /// Returns a data message with nothing but a mark.
    pub(super) fn marked(mark: &'a str) -> Self {
        Self { mark: Some(mark), ..Self::default() }
    }

    fn of_gcm(&self, target: FeatureTarget<'_>) -> Value {
        let to = match target {
            FeatureTarget::Token(token) => token.to_owned(),
            FeatureTarget::Topic(topic) => format!("/topics/{topic}"),
        };
        let mut fields = self.content();
        fields.insert("to".to_owned(), to.into());
        fields.extend(self.collapse_key.map(|key| ("collapse_key".to_owned(), key.into())));
        fields.extend(self.ttl_seconds.map(|ttl| ("time_to_live".to_owned(), ttl.into())));
        let word = |is_high| if is_high { "high" } else { "normal" };
        fields.extend(self.is_high.map(|is_high| ("priority".to_owned(), word(is_high).into())));
        fields.into()
    }

    fn of_fcm(&self, target: FeatureTarget<'_>) -> Value {
        let mut android = Map::new();
        android.extend(self.collapse_key.map(|key| ("collapseKey".to_owned(), key.into())));
        android.extend(self.ttl_seconds.map(|ttl| ("ttl".to_owned(), format!("{ttl}s").into())));
        let word = |is_high| if is_high { "HIGH" } else { "NORMAL" };
        android.extend(self.is_high.map(|is_high| ("priority".to_owned(), word(is_high).into())));
        let mut message = self.content();
        message.insert("android".to_owned(), android.into());
        match target {
            FeatureTarget::Token(token) => message.insert("token".to_owned(), token.into()),
            FeatureTarget::Topic(topic) => message.insert("topic".to_owned(), topic.into()),
        };
        json!({"message": message})
    }

    fn content(&self) -> Map<String, Value> {
        let mut fields = Map::new();
        fields.extend(self.title.map(|title| ("notification".to_owned(), json!({"title": title}))));
        fields.extend(self.mark.map(|mark| ("data".to_owned(), json!({"mark": mark}))));
        fields
    }
}

impl FeatureScene {
    /// Sends a message and returns the response. Fails unless it is accepted.
    pub(super) async fn send(
        &self,
        service: PushServiceFront,
        target: FeatureTarget<'_>,
        message: &FeatureMessage<'_>,
    ) -> anyhow::Result<Value> {
        let answer = self.offer(service, &self.app, &self.key, target, message).await?;
        let is_accepted =
            answer.status.is_success() && answer.body["failure"].as_u64().unwrap_or_default() == 0;
        ensure!(is_accepted, "{} answered {} {}", service.name(), answer.status, answer.body);
        Ok(answer.body)
    }

    /// Sends a message to one device and waits until it is in its mailbox.
    pub(super) async fn mail(
        &self,
        service: PushServiceFront,
        token: &str,
        message: &FeatureMessage<'_>,
    ) -> anyhow::Result<()> {
        let body = self.send(service, FeatureTarget::Token(token), message).await?;
        let id = match service {
            PushServiceFront::Gcm => text(&body["results"][0], "message_id")?,
            PushServiceFront::Fcm => {
                let name = text(&body, "name")?;
                name.rsplit_once('/').context("a name without an id")?.1.to_owned()
            }
        };
        self.settled(&id).await
    }

    /// Sends a message in an app's name and returns any response.
    pub(super) async fn offer(
        &self,
        service: PushServiceFront,
        app: &str,
        key: &str,
        target: FeatureTarget<'_>,
        message: &FeatureMessage<'_>,
    ) -> anyhow::Result<ServiceAnswer> {
        match service {
            PushServiceFront::Gcm => self.ask_with(service, key, "/gcm/send", &message.of_gcm(target)).await,
            PushServiceFront::Fcm => {
                let path = format!("/v1/projects/{app}/messages:send");
                self.ask_with(service, key, &path, &message.of_fcm(target)).await
            }
        }
    }

    /// Calls a service in the app's name.
    pub(super) async fn ask(
        &self,
        service: PushServiceFront,
        path: &str,
        body: &Value,
    ) -> anyhow::Result<ServiceAnswer> {
        self.ask_with(service, &self.key, path, body).await
    }

    async fn ask_with(
        &self,
        service: PushServiceFront,
        key: &str,
        path: &str,
        body: &Value,
    ) -> anyhow::Result<ServiceAnswer> {
        let authorization = match service {
            PushServiceFront::Gcm => format!("key={key}"),
            PushServiceFront::Fcm => format!("Bearer {key}"),
        };
        let request = self.http.request(Method::POST, format!("{}{path}", self.url));
        let answer = request.header(AUTHORIZATION, authorization).json(body).send().await?;
        let (status, headers) = (answer.status(), answer.headers().clone());
        Ok(ServiceAnswer { status, headers, body: answer.json().await.unwrap_or_default() })
    }

    /// Subscribes a device to a topic by the API of the service's time.
    pub(super) async fn subscribe(
        &self,
        service: PushServiceFront,
        token: &str,
        topic: &str,
    ) -> anyhow::Result<()> {
        let answer = match service {
            PushServiceFront::Gcm => {
                let body = json!({"to": format!("/topics/{topic}"), "registration_tokens": [token]});
                self.ask(service, "/iid/v1:batchAdd", &body).await?
            }
            PushServiceFront::Fcm => {
                let (app, token) = (&self.app, segment(token));
                let path =
                    format!("/v1/projects/{app}/registrations/{token}/topicSubscriptions?topicName={topic}");
                self.ask(service, &path, &json!({})).await?
            }
        };
        ensure!(
            answer.status.is_success(),
            "the subscription was answered with {} {}",
            answer.status,
            answer.body
        );
        Ok(())
    }

    /// Makes a device group and returns its key.
    pub(super) async fn group(
        &self,
        service: PushServiceFront,
        name: &str,
        tokens: &[&str],
    ) -> anyhow::Result<String> {
        let path = match service {
            PushServiceFront::Gcm => "/gcm/notification",
            PushServiceFront::Fcm => "/fcm/notification",
        };
        let body = json!({"operation": "create", "notification_key_name": name, "registration_ids": tokens});
        text(&self.ask(service, path, &body).await?.body, "notification_key")
    }
}
