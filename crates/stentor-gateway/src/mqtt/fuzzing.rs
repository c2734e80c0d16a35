//! Entry points for the fuzzer: parsing of untrusted bytes.

use super::frames::MqttReader;
use super::request::MqttRequest;
use super::upstream::draft_of;

/// Parses the bytes of a connection, cut into pieces; returns the number of requests before the first fault.
#[must_use]
pub fn read(bytes: &[u8], piece_bytes: usize, packet_max_bytes: u32) -> usize {
    let mut reader = MqttReader::new(packet_max_bytes);
    let mut requests = 0;
    for piece in bytes.chunks(piece_bytes.max(1)) {
        reader.take(piece);
        loop {
            match reader.next() {
                Ok(Some(request)) => {
                    requests += 1;
                    understand(request);
                }
                Ok(None) => break,
                Err(_) => return requests,
            }
        }
    }
    requests
}

fn understand(request: MqttRequest) {
    match request {
        MqttRequest::Publish(publish) => {
            let _refused = publish.checked().map(|publish| draft_of(&publish).map(|_| ()));
        }
        MqttRequest::Subscribe { filters, .. } => {
            for (filter, _) in filters {
                let _refused = super::subscriptions::MqttFilter::read(&filter);
            }
        }
        _ => {}
    }
}
