//! The app server of the devices: it reads their messages as a stream of events and acknowledges them.

use super::super::caller::{ClusterCaller, ClusterRequest, RETRY_PAUSE};
use super::super::writing::ANSWER_LIMIT;
use super::records::GatewayRecords;
use reqwest::Response;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// Idle timeout of a stream, which has a comment every 15 seconds.
const SILENCE_MAX: Duration = Duration::from_secs(20);
const ACKNOWLEDGE: &str = "/v1/upstream/acknowledge";

/// One stream of the app server, at one node after the other.
pub(super) struct UpstreamReader {
    caller: ClusterCaller,
    place: usize,
    acknowledgements: u64,
    records: Arc<GatewayRecords>,
}

impl UpstreamReader {
    pub(super) const fn new(caller: ClusterCaller, place: usize, records: Arc<GatewayRecords>) -> Self {
        Self { caller, place, acknowledgements: 0, records }
    }

    /// Runs until the task is aborted.
    pub(super) async fn run(mut self) {
        // Each stream begins at a different node.
        for _ in 0..self.place {
            self.caller.next_client();
        }
        loop {
            let client = self.caller.next_client();
            if let Ok(Ok(stream)) = timeout(ANSWER_LIMIT, client.open("/v1/upstream")).await {
                self.follow(stream).await;
            }
            for what in self.caller.log.strange.drain(..) {
                self.records.note_strange(format!("the app server: {what}"));
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    }

    async fn follow(&mut self, mut stream: Response) {
        let mut text = Vec::new();
        while let Ok(Ok(Some(piece))) = timeout(SILENCE_MAX, stream.chunk()).await {
            text.extend_from_slice(&piece);
            let messages = take_messages(&mut text);
            if !messages.is_empty() {
                self.take(&messages).await;
            }
        }
    }

    async fn take(&mut self, messages: &[Value]) {
        let word = |message: &Value, field: &str| message[field].as_str().unwrap_or_default().to_owned();
        let mut ids = Vec::new();
        for message in messages {
            let (id, name) = (word(message, "id"), word(message, "key"));
            if message["data"]["name"] != name.as_str() {
                self.records.note_strange(format!("a message of a device has other data: {message}"));
            }
            self.records.note_read(&id, word(message, "device"), name);
            ids.push(id);
        }
        self.acknowledgements += 1;
        let key = format!("acknowledge-{}-{}", self.place, self.acknowledgements);
        let request = ClusterRequest::Post { path: ACKNOWLEDGE, key, body: json!({"ids": ids}) };
        if self.caller.insist(&request).await.is_some() {
            self.records.note_acknowledged(ids);
        }
    }
}

/// Removes all complete events from the buffer and returns their data.
fn take_messages(text: &mut Vec<u8>) -> Vec<Value> {
    let Some(end) = text.windows(2).rposition(|pair| pair == b"\n\n") else { return Vec::new() };
    let whole: Vec<u8> = text.drain(..end + 2).collect();
    let whole = String::from_utf8_lossy(&whole);
    let data = whole.lines().filter_map(|line| line.strip_prefix("data:"));
    data.filter_map(|data| serde_json::from_str(data.trim()).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_when_they_are_whole_and_comments_are_none() {
        let mut text =
            b": open\n\nevent: message\ndata: {\"id\":\"ups_1\"}\n\nevent: message\ndata: {\"id\"".to_vec();
        assert_eq!(take_messages(&mut text), [json!({"id": "ups_1"})]);
        text.extend(b":\"ups_2\"}\n");
        assert_eq!(take_messages(&mut text), Vec::<Value>::new());
        text.extend(b"\n");
        assert_eq!(take_messages(&mut text), [json!({"id": "ups_2"})]);
        assert!(text.is_empty());
    }
}
