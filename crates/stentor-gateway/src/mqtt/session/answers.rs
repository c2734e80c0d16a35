//! Processing of a device's requests.

use mqtt_protocol_core::mqtt::result_code::{
    DisconnectReasonCode, PubackReasonCode, SubackReasonCode, UnsubackReasonCode,
};
use stentor_core::name::TopicName;
use stentor_core::ports::store::StoreError;
use tokio::io::{AsyncRead, AsyncWrite};

use super::super::content::delivery_of;
use super::super::fault::{MqttEnd, MqttFault};
use super::super::limits::{FILTERS_PER_PACKET_MAX_COUNT, WRITE_BYTES};
use super::super::request::{MqttFilterOptions, MqttPublish, MqttRequest, MqttVersion, WantedLastStates};
use super::super::retained::{LastStates, retained_of};
use super::super::subscriptions::{GivenAs, MqttFilter};
use super::super::upstream::draft_of;
use super::MqttSession;
use crate::upstream::UpstreamError;

impl<S: AsyncRead + AsyncWrite + Unpin> MqttSession<S> {
    /// Processes one request and gathers its reply.
    pub(super) async fn answer(&mut self, request: MqttRequest) -> Result<(), MqttEnd> {
        match request {
            MqttRequest::Connect(_) => return Err(MqttFault::protocol("a CONNECT comes once").into()),
            MqttRequest::Publish(publish) => self.keep(publish.checked()?).await?,
            // Acknowledgements were taken before, many at once.
            MqttRequest::Puback(_) => {}
            MqttRequest::Subscribe { packet_id, filters } => self.subscribe(packet_id, filters).await?,
            MqttRequest::Unsubscribe { packet_id, filters } => self.unsubscribe(packet_id, filters).await,
            MqttRequest::Ping => self.link.writer.pong(),
            // A session that ends with its connection cannot be prolonged at the end (3.14.2.2.2 of MQTT 5).
            MqttRequest::Disconnect { session_expiry_seconds: Some(1..), .. } if !self.is_kept() => {
                let text = "a session that ends with its connection cannot be prolonged at its end";
                return Err(MqttFault::protocol(text).into());
            }
            MqttRequest::Disconnect { with_will, session_expiry_seconds } => {
                return Err(MqttEnd::Left { with_will, session_expiry_seconds });
            }
        }
        Ok(())
    }

    /// Stores a message of the device, and acknowledges it once it is on disk.
    async fn keep(&mut self, publish: MqttPublish) -> Result<(), MqttEnd> {
        let Some(draft) = draft_of(&publish) else {
            let fault =
                MqttFault::new(DisconnectReasonCode::TopicNameInvalid, "a device publishes to upstream/...");
            return self.refuse(&publish, PubackReasonCode::TopicNameInvalid, Some(fault));
        };
        match self.gateway.keep_upstream(self.session.identity(), draft).await {
            Ok(_) if publish.qos > 0 => {
                self.link.writer.confirm(publish.packet_id, PubackReasonCode::Success);
                Ok(())
            }
            Ok(_) => Ok(()),
            Err(UpstreamError::Invalid(_)) => {
                let fault = MqttFault::new(
                    DisconnectReasonCode::PayloadFormatInvalid,
                    "the message is too large, or its message_id is not visible ASCII of at most 100 bytes",
                );
                self.refuse(&publish, PubackReasonCode::PayloadFormatInvalid, Some(fault))
            }
            Err(UpstreamError::Store(StoreError::LimitReached(_))) => {
                let fault = MqttFault::new(
                    DisconnectReasonCode::QuotaExceeded,
                    "too many messages of the device wait for its app",
                );
                let fault = (publish.qos > 0).then_some(fault);
                self.refuse(&publish, PubackReasonCode::QuotaExceeded, fault)
            }
            // Not acknowledged, so that the device sends it again.
            Err(UpstreamError::Store(_)) => {
                Err(MqttFault::new(DisconnectReasonCode::ServerBusy, "the store is unavailable").into())
            }
        }
    }

    /// Rejects a message: by its acknowledgement if the version supports it, otherwise by ending the connection, or silently if there is no
    /// fault.
    fn refuse(
        &mut self,
        publish: &MqttPublish,
        code: PubackReasonCode,
        fault: Option<MqttFault>,
    ) -> Result<(), MqttEnd> {
        if publish.qos > 0 && self.link.reader.version() == Some(MqttVersion::V5) {
            self.link.writer.confirm(publish.packet_id, code);
            return Ok(());
        }
        fault.map_or(Ok(()), |fault| Err(fault.into()))
    }

    async fn subscribe(
        &mut self,
        packet_id: u16,
        filters: Vec<(String, MqttFilterOptions)>,
    ) -> Result<(), MqttEnd> {
        let was_open = self.subscriptions.is_open();
        let (mut codes, mut wanted) = (Vec::with_capacity(filters.len()), LastStates::default());
        for (place, (filter, options)) in filters.iter().enumerate() {
            codes.push(match place < FILTERS_PER_PACKET_MAX_COUNT {
                true => self.subscribe_one(filter, *options, &mut wanted).await,
                false => SubackReasonCode::QuotaExceeded,
            });
        }
        self.link.writer.subscribed(packet_id, codes);
        self.give_last_states(wanted).await?;
        if !was_open && self.subscriptions.is_open() {
            self.open_mailbox().await?;
        }
        Ok(())
    }

    async fn subscribe_one(
        &mut self,
        filter: &str,
        options: MqttFilterOptions,
        wanted: &mut LastStates,
    ) -> SubackReasonCode {
        let meant = match MqttFilter::read(filter) {
            Ok(meant) => meant,
            Err(code) => return code,
        };
        // Before the store is changed: a rejected filter must not subscribe.
        if !self.subscriptions.has_room(filter, self.filters_max_count.into()) {
            return SubackReasonCode::QuotaExceeded;
        }
        let mut was_subscribed = false;
        if let MqttFilter::Topic(topic) = &meant {
            match self.gateway.subscribe(self.session.identity(), topic).await {
                Ok(Some(change)) => was_subscribed = change.changed == 0,
                Ok(None) => return SubackReasonCode::NotAuthorized,
                Err(error) => return suback_code(&error),
            }
        }
        let was_there = self.subscriptions.was_there(filter, was_subscribed);
        match options.last_states {
            WantedLastStates::Always => wanted.add(filter, meant),
            WantedLastStates::WhenNew if !was_there => wanted.add(filter, meant),
            WantedLastStates::WhenNew | WantedLastStates::Never => {}
        }
        // The granted QoS may be lower than the requested one (3.8.4 of both versions).
        let given = GivenAs { is_at_least_once: options.qos > 0, is_as_published: options.is_as_published };
        // Only after the store has it, because a granted subscription must outlive this connection.
        self.subscriptions.add(filter, given);
        if options.qos == 0 { SubackReasonCode::GrantedQos0 } else { SubackReasonCode::GrantedQos1 }
    }

    /// Sends the last states of topics to a device that has just subscribed to them, each once.
    async fn give_last_states(&mut self, wanted: LastStates) -> Result<(), MqttEnd> {
        let identity = self.session.identity();
        let topics = match wanted {
            LastStates::Topics(topics) => topics.into_iter().collect(),
            LastStates::AllTopics => {
                match self.gateway.store().topics_of(identity.app, identity.device).await {
                    Ok(topics) => topics,
                    Err(error) => {
                        tracing::warn!(?error, "the topics of a device could not be looked up");
                        return Ok(());
                    }
                }
            }
        };
        for topic in &topics {
            self.give_retained(topic).await;
            if self.link.writer.waiting_bytes() >= WRITE_BYTES {
                self.link.flush().await?;
            }
        }
        Ok(())
    }

    async fn give_retained(&mut self, topic: &TopicName) {
        match retained_of(&self.gateway, self.session.identity().app, topic).await {
            Ok(Some(message)) => {
                let now = self.gateway.clock().now();
                // A last state that cannot be sealed is skipped, as one is that cannot be looked up.
                if let Ok(delivery) = delivery_of(&message, now, self.keys.as_deref()) {
                    self.write_unnumbered(&delivery, true);
                }
            }
            Ok(None) => {}
            Err(error) => tracing::warn!(?error, "the last state of a topic could not be looked up"),
        }
    }

    async fn unsubscribe(&mut self, packet_id: u16, filters: Vec<String>) {
        let mut codes = Vec::with_capacity(filters.len());
        for (place, filter) in filters.iter().enumerate() {
            codes.push(match place < FILTERS_PER_PACKET_MAX_COUNT {
                true => self.unsubscribe_one(filter).await,
                false => UnsubackReasonCode::ImplementationSpecificError,
            });
        }
        self.link.writer.unsubscribed(packet_id, codes);
    }

    async fn unsubscribe_one(&mut self, filter: &str) -> UnsubackReasonCode {
        let mut was_there = false;
        if let Ok(MqttFilter::Topic(topic)) = MqttFilter::read(filter) {
            let identity = self.session.identity();
            match self.gateway.leave_topic(identity, &topic).await {
                Ok(change) => was_there = change.changed > 0,
                Err(StoreError::NotFound(_)) => {}
                Err(_) => return UnsubackReasonCode::ImplementationSpecificError,
            }
        }
        // Only after the store has removed it: the device gets a success, and does not repeat its request.
        was_there |= self.subscriptions.remove(filter);
        if was_there { UnsubackReasonCode::Success } else { UnsubackReasonCode::NoSubscriptionExisted }
    }
}

const fn suback_code(error: &StoreError) -> SubackReasonCode {
    match error {
        StoreError::LimitReached(_) => SubackReasonCode::QuotaExceeded,
        StoreError::NotFound(_) => SubackReasonCode::NotAuthorized,
        _ => SubackReasonCode::ImplementationSpecificError,
    }
}
