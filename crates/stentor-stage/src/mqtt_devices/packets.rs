//! The few packets of MQTT 3.1.1 (OASIS standard, chapter 3) that a device needs: a reading of its own, for it judges the server's.

/// How a packet begins whose length is the first thing behind it.
const CONNECT: u8 = 0x10;
const CONNACK: u8 = 0x20;
const PUBLISH: u8 = 0x30;
const PUBACK: u8 = 0x40;
const SUBSCRIBE: u8 = 0x82;
const SUBACK: u8 = 0x90;
const DISCONNECT: u8 = 0xe0;
/// User name, password, clean session.
const CONNECT_FLAGS: u8 = 0b1100_0010;
/// A subscription of ours was refused.
const SUBACK_FAILURE: u8 = 0x80;
/// Bytes of a length at most.
const LENGTH_MAX_BYTES: usize = 4;

/// What the server says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ServerPacket {
    /// The device is let in.
    Admitted,
    /// The mailbox is open.
    Subscribed,
    /// A message, and the number to acknowledge it by.
    Message {
        /// `None` with QoS 0.
        packet_id: Option<u16>,
        /// What it says.
        payload: Vec<u8>,
    },
    /// Something that a device need not know.
    Other,
}

/// Writes the login and the subscription to all messages of the device.
pub(super) fn login(client_id: &str, token: &str, secret: &str) -> Vec<u8> {
    // No keep alive: a server that is killed ends the connection by itself on one machine.
    let head = [&text("MQTT")[..], &[4, CONNECT_FLAGS, 0, 0]].concat();
    let mut bytes = packet(CONNECT, &[head, text(client_id), text(token), text(secret)].concat());
    bytes.extend(packet(SUBSCRIBE, &[&[0, 1][..], &text("messages/#"), &[1]].concat()));
    bytes
}

/// Writes the acknowledgement of a message.
pub(super) const fn acknowledgement(packet_id: u16) -> [u8; 4] {
    let [high, low] = packet_id.to_be_bytes();
    [PUBACK, 2, high, low]
}

/// Writes the farewell.
pub(super) const fn farewell() -> [u8; 2] {
    [DISCONNECT, 0]
}

/// Takes the first whole packet from what was read; `None` when it is not whole yet. Fails for what is no such packet.
pub(super) fn take(read: &mut Vec<u8>) -> Result<Option<ServerPacket>, &'static str> {
    let Some((begin, length)) = length(read)? else { return Ok(None) };
    if read.len() < begin + length {
        return Ok(None);
    }
    let packet = understood(read[0], &read[begin..begin + length]);
    read.drain(..begin + length);
    packet.map(Some)
}

/// Returns where the body begins, and how long it is.
fn length(read: &[u8]) -> Result<Option<(usize, usize)>, &'static str> {
    let mut length = 0;
    for (place, byte) in read.iter().skip(1).take(LENGTH_MAX_BYTES).enumerate() {
        length |= usize::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            return Ok(Some((place + 2, length)));
        }
    }
    if read.len() > LENGTH_MAX_BYTES { Err("a length has no end") } else { Ok(None) }
}

fn understood(first: u8, body: &[u8]) -> Result<ServerPacket, &'static str> {
    match (first & 0xf0, body) {
        (CONNACK, [_, 0]) => Ok(ServerPacket::Admitted),
        (CONNACK, _) => Err("the login was refused"),
        (SUBACK, [_, _, code]) if *code < SUBACK_FAILURE => Ok(ServerPacket::Subscribed),
        (SUBACK, _) => Err("the subscription was refused"),
        (PUBLISH, body) => message(first, body).ok_or("a message is not whole"),
        _ => Ok(ServerPacket::Other),
    }
}

fn message(first: u8, body: &[u8]) -> Option<ServerPacket> {
    let (topic_bytes, rest) = body.split_first_chunk::<2>()?;
    let rest = rest.get(usize::from(u16::from_be_bytes(*topic_bytes))..)?;
    if first & 0b0110 == 0 {
        return Some(ServerPacket::Message { packet_id: None, payload: rest.to_vec() });
    }
    let (packet_id, payload) = rest.split_first_chunk::<2>()?;
    let packet_id = Some(u16::from_be_bytes(*packet_id));
    Some(ServerPacket::Message { packet_id, payload: payload.to_vec() })
}

fn packet(first: u8, body: &[u8]) -> Vec<u8> {
    let (mut bytes, mut left) = (vec![first], body.len());
    while left >= 0x80 {
        bytes.push((left % 0x80) as u8 | 0x80);
        left /= 0x80;
    }
    bytes.push(left as u8);
    bytes.extend_from_slice(body);
    bytes
}

fn text(text: &str) -> Vec<u8> {
    let length = u16::try_from(text.len()).unwrap_or(u16::MAX);
    [&length.to_be_bytes()[..], text.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_in_pieces_is_read_when_it_is_whole() {
        let whole =
            [&[CONNACK, 2, 0, 0][..], &[SUBACK, 3, 0, 1, 1], &[0x32, 7, 0, 1, b't', 0, 9, b'h', b'i']];
        let mut read = Vec::new();
        let mut packets = Vec::new();
        for byte in whole.concat() {
            read.push(byte);
            packets.extend(take(&mut read).expect("in order"));
        }
        let message = ServerPacket::Message { packet_id: Some(9), payload: b"hi".to_vec() };
        assert_eq!(packets, [ServerPacket::Admitted, ServerPacket::Subscribed, message]);
        assert!(read.is_empty());
    }

    #[test]
    fn a_refusal_and_what_is_no_packet_are_told() {
        assert_eq!(take(&mut vec![CONNACK, 2, 0, 5]), Err("the login was refused"));
        assert_eq!(take(&mut vec![SUBACK, 3, 0, 1, 0x80]), Err("the subscription was refused"));
        assert_eq!(take(&mut vec![0x32, 1, 0]), Err("a message is not whole"));
        assert_eq!(take(&mut vec![0x32, 0xff, 0xff, 0xff, 0xff, 0xff]), Err("a length has no end"));
    }

    #[test]
    fn a_login_says_how_long_it_is() {
        let bytes = login("c", &"t".repeat(200), "s");
        let length = usize::from(bytes[1] & 0x7f) + (usize::from(bytes[2]) << 7);
        assert_eq!(bytes[3 + length..][..2], [SUBSCRIBE, 15], "the subscription follows");
    }
}
