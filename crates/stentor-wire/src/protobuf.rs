//! Protocol Buffers: content by the schema in [`SCHEMA`].

pub mod fields;

use crate::{Content, DocumentLimits, Item, Point, WireError};
use prost::{Message, Oneof};

/// The schema, for code generators.
pub const SCHEMA: &str = include_str!("../schema/content.proto");

/// Reads content. Unknown fields are skipped, as the format requires.
pub fn read(bytes: &[u8], limits: &DocumentLimits) -> Result<Content, WireError> {
    limits.check_size(bytes.len())?;
    let envelope = ContentMessage::decode(bytes).map_err(|error| WireError::Malformed(error.to_string()))?;
    let content = Content::from(envelope.kind.ok_or_else(|| WireError::missing("content"))?);
    if content.entries() > limits.nodes_max {
        return Err(WireError::TooMany { what: "nodes", max: limits.nodes_max });
    }
    Ok(content)
}

/// Writes content.
#[must_use]
pub fn write(content: &Content) -> Vec<u8> {
    ContentMessage { kind: Some(Kind::from(content)) }.encode_to_vec()
}

#[derive(Clone, PartialEq, Message)]
struct ContentMessage {
    #[prost(oneof = "Kind", tags = "1, 2, 3, 4, 5")]
    kind: Option<Kind>,
}

#[derive(Clone, PartialEq, Oneof)]
enum Kind {
    #[prost(string, tag = "1")]
    Payload(String),
    #[prost(message, tag = "2")]
    Numbers(NumberList),
    #[prost(message, tag = "3")]
    Texts(TextList),
    #[prost(message, tag = "4")]
    Objects(ObjectList),
    #[prost(message, tag = "5")]
    Points(PointList),
}

#[derive(Clone, PartialEq, Message)]
struct NumberList {
    #[prost(sint64, repeated, tag = "1")]
    numbers: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
struct TextList {
    #[prost(string, repeated, tag = "1")]
    texts: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
struct ObjectList {
    #[prost(message, repeated, tag = "1")]
    objects: Vec<ObjectRow>,
}

#[derive(Clone, PartialEq, Message)]
struct ObjectRow {
    #[prost(sint64, tag = "1")]
    id: i64,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(double, tag = "3")]
    price: f64,
}

#[derive(Clone, PartialEq, Message)]
struct PointList {
    #[prost(message, repeated, tag = "1")]
    points: Vec<PointRow>,
}

#[derive(Clone, PartialEq, Message)]
struct PointRow {
    #[prost(string, tag = "1")]
    id: String,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(string, tag = "3")]
    category: String,
    #[prost(string, tag = "4")]
    description: String,
    #[prost(string, tag = "5")]
    address: String,
    #[prost(string, tag = "6")]
    city: String,
    #[prost(string, tag = "7")]
    country: String,
    #[prost(string, tag = "8")]
    latitude: String,
    #[prost(string, tag = "9")]
    longitude: String,
    #[prost(string, tag = "10")]
    hours: String,
    #[prost(string, tag = "11")]
    phone: String,
    #[prost(string, tag = "12")]
    website: String,
    #[prost(string, tag = "13")]
    picture: String,
}

impl From<&Content> for Kind {
    fn from(content: &Content) -> Self {
        match content {
            Content::Payload(text) => Self::Payload(text.clone()),
            Content::Numbers(numbers) => Self::Numbers(NumberList { numbers: numbers.clone() }),
            Content::Texts(texts) => Self::Texts(TextList { texts: texts.clone() }),
            Content::Objects(items) => {
                Self::Objects(ObjectList { objects: items.iter().map(ObjectRow::from).collect() })
            }
            Content::Points(points) => {
                Self::Points(PointList { points: points.iter().map(PointRow::from).collect() })
            }
        }
    }
}

impl From<Kind> for Content {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Payload(text) => Self::Payload(text),
            Kind::Numbers(list) => Self::Numbers(list.numbers),
            Kind::Texts(list) => Self::Texts(list.texts),
            Kind::Objects(list) => Self::Objects(list.objects.into_iter().map(Item::from).collect()),
            Kind::Points(list) => Self::Points(list.points.into_iter().map(Point::from).collect()),
        }
    }
}

impl From<&Item> for ObjectRow {
    fn from(item: &Item) -> Self {
        Self { id: item.id, name: item.name.clone(), price: item.price }
    }
}

impl From<ObjectRow> for Item {
    fn from(row: ObjectRow) -> Self {
        let ObjectRow { id, name, price } = row;
        Self { id, name, price }
    }
}

/// Moves the fields of a point from one struct to another.
macro_rules! same_fields {
    ($from:expr) => {
        Self {
            id: $from.id,
            name: $from.name,
            category: $from.category,
            description: $from.description,
            address: $from.address,
            city: $from.city,
            country: $from.country,
            latitude: $from.latitude,
            longitude: $from.longitude,
            hours: $from.hours,
            phone: $from.phone,
            website: $from.website,
            picture: $from.picture,
        }
    };
}

impl From<&Point> for PointRow {
    fn from(point: &Point) -> Self {
        let point = point.clone();
        same_fields!(point)
    }
}

impl From<PointRow> for Point {
    fn from(row: PointRow) -> Self {
        same_fields!(row)
    }
}
