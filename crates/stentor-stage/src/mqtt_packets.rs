//! The packets of MQTT 3.1.1 (OASIS standard, 2 and 3) that devices of the stage and a publisher need: an independent implementation,
//! because it judges the server's.

use std::ops::Range;

const CONNECT: u8 = 0x10;
const CONNACK: u8 = 0x20;
const PUBLISH: u8 = 0x30;
const PUBACK: u8 = 0x40;
const SUBSCRIBE: u8 = 0x82;
const SUBACK: u8 = 0x90;
const DISCONNECT: u8 = 0xE0;
const QOS_1: u8 = 0x02;
const QOS_BITS: u8 = 0x06;
/// Clean session, with a user name and a password.
const CONNECT_FLAGS: u8 = 0b1100_0010;
/// No keep alive: the measurement needs idle connections, and on one machine the connections of a killed server end by themselves.
const KEEP_ALIVE: [u8; 2] = [0, 0];
/// The return code of a SUBACK for a refused filter.
const SUBSCRIPTION_REFUSED: u8 = 0x80;
/// The maximum number of bytes of a packet's length.
const LENGTH_MAX_BYTES: usize = 4;

/// A packet received from the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReceivedPacket {
    /// The answer to the login; zero lets the device in.
    LoginAnswer(u8),
    /// The answer to the filter.
    SubscriptionAnswer {
        /// True if the subscription was granted.
        is_granted: bool,
    },
    /// A message.
    Message {
        /// The packet id to confirm; none for QoS 0.
        packet_id: Option<u16>,
        /// The position of its payload in the bytes that were read.
        payload: Range<usize>,
    },
    /// The server has accepted our message.
    Confirmation(u16),
    /// Anything else.
    Other,
}

/// Bytes that are no packet of MQTT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoPacket;

/// Reads the packet that begins at `start`, and the position of the next one; `None` while the packet is incomplete.
pub fn read(bytes: &[u8], start: usize) -> Result<Option<(ReceivedPacket, usize)>, NoPacket> {
    let Some(first) = bytes.get(start) else { return Ok(None) };
    let Some((length, body)) = read_length(bytes, start + 1)? else { return Ok(None) };
    let end = body + length;
    let Some(rest) = bytes.get(body..end) else { return Ok(None) };
    let heard = match first & 0xF0 {
        CONNACK => ReceivedPacket::LoginAnswer(*rest.get(1).ok_or(NoPacket)?),
        SUBACK => {
            let is_granted = *rest.last().ok_or(NoPacket)? != SUBSCRIPTION_REFUSED;
            ReceivedPacket::SubscriptionAnswer { is_granted }
        }
        PUBLISH => read_message(rest, body, first & QOS_BITS != 0)?,
        PUBACK => ReceivedPacket::Confirmation(read_number(rest, 0)?),
        _ => ReceivedPacket::Other,
    };
    Ok(Some((heard, end)))
}

fn read_length(bytes: &[u8], start: usize) -> Result<Option<(usize, usize)>, NoPacket> {
    let mut length = 0;
    for place in 0..LENGTH_MAX_BYTES {
        let Some(byte) = bytes.get(start + place) else { return Ok(None) };
        length |= usize::from(byte & 0x7F) << (7 * place);
        if byte & 0x80 == 0 {
            return Ok(Some((length, start + place + 1)));
        }
    }
    Err(NoPacket)
}

fn read_message(rest: &[u8], body: usize, has_id: bool) -> Result<ReceivedPacket, NoPacket> {
    let mut at = 2 + usize::from(read_number(rest, 0)?);
    let packet_id = if has_id { Some(read_number(rest, at)?) } else { None };
    at += if has_id { 2 } else { 0 };
    if at > rest.len() {
        return Err(NoPacket);
    }
    Ok(ReceivedPacket::Message { packet_id, payload: body + at..body + rest.len() })
}

fn read_number(rest: &[u8], at: usize) -> Result<u16, NoPacket> {
    let bytes = rest.get(at..at + 2).ok_or(NoPacket)?;
    Ok(u16::from_be_bytes([bytes[0], bytes[1]]))
}

/// Writes a login with a clean session.
pub fn connect(client_id: &str, user: &str, password: &str) -> Vec<u8> {
    let mut rest = text("MQTT");
    rest.extend([4, CONNECT_FLAGS]);
    rest.extend(KEEP_ALIVE);
    for part in [client_id, user, password] {
        rest.extend(text(part));
    }
    packet(CONNECT, &rest)
}

/// Writes a subscription to one filter, with QoS 1.
pub fn subscribe(filter: &str) -> Vec<u8> {
    let mut rest = vec![0, 1];
    rest.extend(text(filter));
    rest.push(1);
    packet(SUBSCRIBE, &rest)
}

/// Writes a message of QoS 1.
pub fn publish(topic: &str, payload: &[u8], packet_id: u16) -> Vec<u8> {
    let mut rest = text(topic);
    rest.extend(packet_id.to_be_bytes());
    rest.extend_from_slice(payload);
    packet(PUBLISH | QOS_1, &rest)
}

/// Writes that a message has come.
pub const fn confirm(packet_id: u16) -> [u8; 4] {
    let [high, low] = packet_id.to_be_bytes();
    [PUBACK, 2, high, low]
}

/// Writes the farewell.
pub const fn disconnect() -> [u8; 2] {
    [DISCONNECT, 0]
}

fn text(text: &str) -> Vec<u8> {
    let length = u16::try_from(text.len()).unwrap_or(u16::MAX);
    let mut bytes = length.to_be_bytes().to_vec();
    bytes.extend_from_slice(&text.as_bytes()[..usize::from(length)]);
    bytes
}

fn packet(first: u8, rest: &[u8]) -> Vec<u8> {
    let (mut bytes, mut left) = (vec![first], rest.len());
    while left >= 0x80 {
        bytes.push((left % 0x80) as u8 | 0x80);
        left /= 0x80;
    }
    bytes.push(left as u8);
    bytes.extend_from_slice(rest);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read_with_its_number_and_its_payload_and_confirmed() {
        let payload = vec![b'x'; 300];
        let bytes = [&confirm(7)[..], &publish("topics/all", &payload, 0x1234)].concat();
        assert_eq!(read(&bytes, 0), Ok(Some((ReceivedPacket::Confirmation(7), 4))));
        let whole = read(&bytes, 4).expect("packets");
        let payload = bytes.len() - 300..bytes.len();
        assert_eq!(whole, Some((ReceivedPacket::Message { packet_id: Some(0x1234), payload }, bytes.len())));
        assert_eq!(confirm(0x1234), [0x40, 2, 0x12, 0x34]);
    }

    #[test]
    fn a_packet_in_pieces_is_waited_for() {
        let bytes = publish("a", &[b'x'; 200], 1);
        for end in 0..bytes.len() {
            assert_eq!(read(&bytes[..end], 0), Ok(None), "{end}");
        }
    }

    #[test]
    fn answers_tell_whether_the_device_is_let_in() {
        assert_eq!(read(&[0x20, 2, 0, 5], 0), Ok(Some((ReceivedPacket::LoginAnswer(5), 4))));
        let granted = ReceivedPacket::SubscriptionAnswer { is_granted: true };
        assert_eq!(read(&[0x90, 3, 0, 1, 1], 0), Ok(Some((granted, 5))));
        let refused = ReceivedPacket::SubscriptionAnswer { is_granted: false };
        assert_eq!(read(&[0x90, 3, 0, 1, 0x80], 0), Ok(Some((refused, 5))));
    }

    #[test]
    fn what_is_no_packet_is_told() {
        assert_eq!(read(&[0x30, 0xFF, 0xFF, 0xFF, 0xFF, 1], 0), Err(NoPacket));
        assert_eq!(read(&[0x32, 3, 0, 9, 1], 0), Err(NoPacket));
        assert_eq!(read(&[0x20, 1, 0], 0), Err(NoPacket));
    }

    #[test]
    fn a_login_is_written_as_the_standard_has_it() {
        let bytes = connect("c", "u", "p");
        assert_eq!(bytes, b"\x10\x13\x00\x04MQTT\x04\xC2\x00\x00\x00\x01c\x00\x01u\x00\x01p");
        assert_eq!(subscribe("a/#"), b"\x82\x08\x00\x01\x00\x03a/#\x01");
    }
}
