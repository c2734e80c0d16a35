//! One page of a list in the reply of a face: members of a group, topics, or devices.

mod assembly;
mod message;

use anyhow::{Context, bail};
use assembly::PageAssembly;
use serde::Deserialize;
use stentor_wire::content::POINT_FIELDS;
use stentor_wire::xml::{decode, dom, sax};
use stentor_wire::{DocumentLimits, Item, Point, Value, xmlrpc};

/// A page of a list, with the cursor of the next page.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct ListPage {
    /// External ids of users, in a list of members.
    pub(crate) users: Vec<String>,
    /// Topics as objects: the number of devices, and the name.
    pub(crate) topics: Vec<Item>,
    /// Devices, with the texts that were registered.
    pub(crate) devices: Vec<ListedDevice>,
    /// The cursor; absent on the last page.
    pub(crate) next: Option<String>,
}

/// The texts with which a device was registered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct ListedDevice {
    #[serde(default)]
    pub(crate) user: String,
    #[serde(default)]
    pub(crate) tags: Vec<String>,
}

/// The kind of a list; the numbers of fields in Protocol Buffers depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListKind {
    Members,
    Topics,
    Devices,
}

/// The parser of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageReader {
    Json,
    /// XML, read with callbacks.
    Sax,
    /// XML, read into a tree.
    Dom,
    /// XML, read on demand.
    Pull,
    XmlRpc,
    /// A message of Protocol Buffers.
    Message,
    /// A message with gRPC's five bytes before it.
    GrpcMessage,
    /// A message in the envelope of the raw socket.
    FramedMessage,
}

#[derive(Deserialize)]
struct JsonPage {
    #[serde(default)]
    users: Vec<String>,
    #[serde(default)]
    topics: Vec<JsonTopic>,
    next: Option<String>,
}

#[derive(Deserialize)]
struct JsonDevices {
    #[serde(default)]
    devices: Vec<ListedDevice>,
    next: Option<String>,
}

#[derive(Deserialize)]
struct JsonTopic {
    name: String,
    device_count: i64,
}

impl ListPage {
    /// Reads the reply of a face; a fault is an error with its text.
    pub(crate) fn read(reader: PageReader, kind: ListKind, reply: &[u8]) -> anyhow::Result<Self> {
        let limits = DocumentLimits::default();
        match reader {
            PageReader::Json => Self::of_json(kind, reply),
            PageReader::Sax => {
                let mut assembly = PageAssembly::default();
                sax::parse(reply, &limits, &mut assembly)?;
                assembly.page()
            }
            PageReader::Dom => PageAssembly::of_tree(&dom::parse(reply, &limits)?),
            PageReader::Pull => PageAssembly::of_text(&decode(reply, &limits)?, &limits),
            PageReader::XmlRpc => match xmlrpc::read_response(reply, &limits)? {
                Ok(value) => Self::of_value(&value),
                Err(fault) => bail!("a fault: {fault}"),
            },
            PageReader::Message => message::page(kind, reply),
            PageReader::GrpcMessage => message::page(kind, message::of_grpc(reply)?),
            PageReader::FramedMessage => message::page(kind, message::of_frame(reply)?),
        }
    }

    fn of_json(kind: ListKind, reply: &[u8]) -> anyhow::Result<Self> {
        if kind == ListKind::Devices {
            let JsonDevices { devices, next } = serde_json::from_slice(reply)?;
            return Ok(Self { devices, next, ..Self::default() });
        }
        let JsonPage { users, topics, next } = serde_json::from_slice(reply)?;
        let topics = topics.into_iter().map(|topic| object(topic.name, topic.device_count));
        Ok(Self { users, topics: topics.collect(), next, ..Self::default() })
    }

    fn of_value(value: &Value) -> anyhow::Result<Self> {
        let topic = |topic: &Value| {
            Some(object(topic.get("name")?.as_text()?.to_owned(), topic.get("device_count")?.as_int()?))
        };
        Ok(Self {
            users: texts(value, "users").context("a user is no text")?,
            topics: list(value, "topics")
                .iter()
                .map(topic)
                .collect::<Option<_>>()
                .context("a topic lacks its name or its count")?,
            devices: list(value, "devices")
                .iter()
                .map(device_of_value)
                .collect::<Option<_>>()
                .context("a tag is no text")?,
            next: value.get("next").and_then(Value::as_text).map(str::to_owned),
        })
    }
}

impl ListedDevice {
    /// Converts the device to a point of interest: its user and its tags become the texts, and the other fields are empty.
    pub(crate) fn point(self) -> Point {
        let mut fields: [String; POINT_FIELDS] = std::array::from_fn(|_| String::new());
        for (field, text) in fields.iter_mut().zip(std::iter::once(self.user).chain(self.tags)) {
            *field = text;
        }
        Point::of(fields)
    }

    /// Converts a point that was made of a device back to the device.
    pub(crate) fn of_point(point: &Point) -> Self {
        let mut texts = point.fields().into_iter().filter(|text| !text.is_empty()).map(str::to_owned);
        Self { user: texts.next().unwrap_or_default(), tags: texts.collect() }
    }
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    match value.get(name) {
        Some(Value::List(items)) => items.as_slice(),
        _ => &[],
    }
}

fn texts(value: &Value, name: &str) -> Option<Vec<String>> {
    list(value, name).iter().map(|text| Some(text.as_text()?.to_owned())).collect()
}

/// Reads a device. In a list of members the list of this name has ids, which yield no device.
fn device_of_value(device: &Value) -> Option<ListedDevice> {
    let user = device.get("user").and_then(Value::as_text).unwrap_or_default().to_owned();
    Some(ListedDevice { user, tags: texts(device, "tags")? })
}

const fn object(name: String, id: i64) -> Item {
    Item { id, name, price: 0.0 }
}

#[cfg(test)]
mod tests;
