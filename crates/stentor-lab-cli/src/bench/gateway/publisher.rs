//! Publication of a message for all devices, at the gateway or at a broker.

use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use stentor_stage::client::{ApiClient, segment};
use stentor_stage::failure::CommandFailure;
use stentor_stage::mqtt_packets::{self as packets, ReceivedPacket};
use stentor_stage::text::cell;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Topic to which every device of a broker subscribes.
pub(super) const BROKER_TOPIC: &str = "bench/all";
/// Timeout of a broker's confirmation of a message.
const CONFIRMATION_LIMIT: Duration = Duration::from_secs(60);
/// Longest time without a new receipt, after which missing receipts count as lost.
const RECEIPTS_LIMIT: Duration = Duration::from_secs(20);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A publisher of messages.
pub(super) enum Publisher {
    /// An app server of ours: a campaign to everyone.
    Api(ApiClient),
    /// A client of a broker: one message of QoS 1 to a topic of all devices.
    Mqtt(MqttPublisher),
}

/// A connection to a broker.
pub(super) struct MqttPublisher {
    stream: TcpStream,
    came: Vec<u8>,
    packet_id: u16,
}

impl Publisher {
    /// Sends a message with this number to all; returns its campaign, if it has one.
    pub(super) async fn publish(&mut self, number: u64) -> anyhow::Result<Option<String>> {
        match self {
            Self::Api(client) => {
                let campaign = client.post("/v1/messages", &message("everyone".into(), number)).await?;
                Ok(Some(cell(&campaign["campaign"])))
            }
            Self::Mqtt(publisher) => publisher.publish(number).await.map(|()| None),
        }
    }

    /// Waits until the ledger of a campaign has `wanted` receipts, or no more arrive; returns their number.
    pub(super) async fn receipts(&self, campaign: &str, wanted: u64) -> anyhow::Result<u64> {
        let Self::Api(client) = self else { return Ok(0) };
        receipts(client, campaign, wanted).await
    }
}

impl MqttPublisher {
    /// Logs in.
    pub(super) async fn connect(address: SocketAddr) -> anyhow::Result<Self> {
        let mut stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        stream.write_all(&packets::connect("bench-publisher", "bench", "bench")).await?;
        let mut publisher = Self { stream, came: Vec::new(), packet_id: 0 };
        match publisher.next().await? {
            ReceivedPacket::LoginAnswer(0) => Ok(publisher),
            packet => Err(CommandFailure::not_done(format!("the broker answered {packet:?}")).into()),
        }
    }

    async fn publish(&mut self, number: u64) -> anyhow::Result<()> {
        self.packet_id = self.packet_id.checked_add(1).unwrap_or(1);
        let packet = packets::publish(BROKER_TOPIC, payload(number).as_bytes(), self.packet_id);
        self.stream.write_all(&packet).await?;
        let confirmed = async {
            while self.next().await? != ReceivedPacket::Confirmation(self.packet_id) {}
            Ok(())
        };
        tokio::time::timeout(CONFIRMATION_LIMIT, confirmed).await?
    }

    async fn next(&mut self) -> anyhow::Result<ReceivedPacket> {
        loop {
            let packet = packets::read(&self.came, 0);
            let packet = packet.map_err(|_| CommandFailure::not_done("the broker speaks no MQTT"))?;
            if let Some((packet, end)) = packet {
                self.came.drain(..end);
                return Ok(packet);
            }
            if self.stream.read_buf(&mut self.came).await? == 0 {
                return Err(CommandFailure::not_done("the broker has closed the connection").into());
            }
        }
    }
}

/// Waits until the ledger of a campaign has `wanted` receipts, or no more arrive; returns their number.
pub(super) async fn receipts(client: &ApiClient, campaign: &str, wanted: u64) -> anyhow::Result<u64> {
    let path = format!("/v1/campaigns/{}", segment(campaign));
    let (mut before, mut changed) = (0, Instant::now());
    loop {
        let delivered = client.get(&path).await?["totals"]["delivered"].as_u64().unwrap_or(0);
        if delivered >= wanted || changed.elapsed() > RECEIPTS_LIMIT {
            return Ok(delivered);
        }
        if delivered != before {
            (before, changed) = (delivered, Instant::now());
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Writes a message in the form of the API.
pub(super) fn message(target: Value, number: u64) -> Value {
    json!({
        "target": target,
        "notification": {"title": "Line 4 is late", "body": "The next train leaves at 18:42 from platform 7."},
        "data": {"n": number.to_string()},
        "ttl_seconds": 3_600,
    })
}

/// Writes the payload of such a message at a device of the gateway, for brokers.
fn payload(number: u64) -> String {
    let message = message(Value::Null, number);
    json!({
        "id": format!("msg_{number:013}"),
        "notification": message["notification"],
        "data": message["data"],
        "priority": "normal",
        "sent_at": 1_700_000_000_000_u64,
    })
    .to_string()
}
