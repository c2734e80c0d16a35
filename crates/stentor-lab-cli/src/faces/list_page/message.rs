//! A page as a message of Protocol Buffers: the fields that it needs, by the numbers that `stentor contract proto` prints.

use super::{ListKind, ListPage, ListedDevice, object};
use anyhow::{Context, ensure};
use stentor_wire::protobuf::fields::{WireValue, read_delimited, read_key, read_varint, skip};

/// The flag of compression in one byte, and the length in four.
const GRPC_HEAD_BYTES: usize = 5;

/// A field: its number and its bytes, or only its number if it is a whole number.
enum PageField<'a> {
    Bytes(u32, &'a [u8]),
    Number(u32, u64),
}

/// Reads the page of a list.
pub(super) fn page(kind: ListKind, mut message: &[u8]) -> anyhow::Result<ListPage> {
    // `MemberList` has devices between users and the cursor; `TopicList` and `DeviceList` have not.
    let next = if kind == ListKind::Members { 3 } else { 2 };
    let mut page = ListPage::default();
    while let Some(field) = field(&mut message)? {
        match (kind, field) {
            (_, PageField::Bytes(number, bytes)) if number == next => page.next = Some(text(bytes)?),
            (ListKind::Members, PageField::Bytes(1, user)) => page.users.push(text(user)?),
            (ListKind::Devices, PageField::Bytes(1, device)) => page.devices.push(listed(device)?),
            (ListKind::Topics, PageField::Bytes(1, topic)) => page.topics.push(item(topic)?),
            _ => {}
        }
    }
    Ok(page)
}

/// Takes the message out of a reply of gRPC.
pub(super) fn of_grpc(reply: &[u8]) -> anyhow::Result<&[u8]> {
    let (head, message) = reply.split_first_chunk::<GRPC_HEAD_BYTES>().context("gRPC gave no message")?;
    ensure!(head[0] == 0, "the message is compressed");
    Ok(message)
}

/// Takes the message out of a frame of the raw socket; a refusal is an error with its code.
pub(super) fn of_frame(mut frame: &[u8]) -> anyhow::Result<&[u8]> {
    let mut reply = None;
    while let Some(field) = field(&mut frame)? {
        match field {
            PageField::Bytes(2, bytes) => reply = Some(bytes),
            PageField::Bytes(3, error) => anyhow::bail!("refused: {}", String::from_utf8_lossy(error)),
            _ => {}
        }
    }
    // A message without fields has no bytes and is omitted.
    Ok(reply.unwrap_or_default())
}

fn listed(mut message: &[u8]) -> anyhow::Result<ListedDevice> {
    let mut device = ListedDevice::default();
    while let Some(field) = field(&mut message)? {
        match field {
            PageField::Bytes(5, tag) => device.tags.push(text(tag)?),
            PageField::Bytes(12, user) => device.user = text(user)?,
            _ => {}
        }
    }
    Ok(device)
}

fn item(mut message: &[u8]) -> anyhow::Result<stentor_wire::Item> {
    let (mut name, mut count) = (String::new(), 0);
    while let Some(field) = field(&mut message)? {
        match field {
            PageField::Bytes(1, bytes) => name = text(bytes)?,
            PageField::Number(2, number) => count = number.cast_signed(),
            _ => {}
        }
    }
    Ok(object(name, count))
}

fn text(bytes: &[u8]) -> anyhow::Result<String> {
    Ok(std::str::from_utf8(bytes).context("a text is not UTF-8")?.to_owned())
}

/// Reads the next field; values of a fixed length, which a page does not have, are skipped.
fn field<'a>(message: &mut &'a [u8]) -> anyhow::Result<Option<PageField<'a>>> {
    while !message.is_empty() {
        match read_key(message)? {
            (number, WireValue::Delimited) => {
                return Ok(Some(PageField::Bytes(number, read_delimited(message)?)));
            }
            (number, WireValue::Varint) => {
                return Ok(Some(PageField::Number(number, read_varint(message)?)));
            }
            (_, fixed) => skip(fixed, message)?,
        }
    }
    Ok(None)
}
