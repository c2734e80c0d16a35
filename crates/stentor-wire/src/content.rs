//! The content that subjects of the laboratory carry, the same in every format: a payload, numbers, texts, objects, points of interest.

pub mod dom;
pub mod pull;
pub mod sax;
mod write;

use serde::{Deserialize, Serialize};

/// The content of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Content {
    /// Plain text, for messages of a given size.
    Payload(String),
    /// Whole numbers.
    Numbers(Vec<i64>),
    /// A list of texts.
    Texts(Vec<String>),
    /// Small objects.
    Objects(Vec<Item>),
    /// Points of interest.
    Points(Vec<Point>),
}

/// A small object: a number, a text and a number with a fraction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Item {
    /// Its number.
    pub id: i64,
    /// Its name.
    pub name: String,
    /// Its price.
    pub price: f64,
}

/// A point of interest: thirteen fields of text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Point {
    /// Its number, as text.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The kind of place.
    pub category: String,
    /// A description of the sights; the longest field.
    pub description: String,
    /// Street and number.
    pub address: String,
    /// The town where it is.
    pub city: String,
    /// The country where it is.
    pub country: String,
    /// Degrees north.
    pub latitude: String,
    /// Degrees east.
    pub longitude: String,
    /// Opening hours.
    pub hours: String,
    /// The telephone number.
    pub phone: String,
    /// Web site.
    pub website: String,
    /// The address of a picture.
    pub picture: String,
}

/// Fields of a point of interest.
pub const POINT_FIELDS: usize = 13;

/// Their names, in order.
pub const POINT_FIELD_NAMES: [&str; POINT_FIELDS] = [
    "id",
    "name",
    "category",
    "description",
    "address",
    "city",
    "country",
    "latitude",
    "longitude",
    "hours",
    "phone",
    "website",
    "picture",
];

/// Element names of the XML form: the root, and an entry of it.
pub(crate) mod names {
    pub(crate) const PAYLOAD: &str = "payload";
    pub(crate) const NUMBERS: (&str, &str) = ("numbers", "n");
    pub(crate) const TEXTS: (&str, &str) = ("texts", "t");
    pub(crate) const OBJECTS: (&str, &str) = ("objects", "object");
    pub(crate) const POINTS: (&str, &str) = ("points", "point");
}

impl Point {
    /// Returns the fields in the order of their names.
    #[must_use]
    pub fn fields(&self) -> [&str; POINT_FIELDS] {
        [
            &self.id,
            &self.name,
            &self.category,
            &self.description,
            &self.address,
            &self.city,
            &self.country,
            &self.latitude,
            &self.longitude,
            &self.hours,
            &self.phone,
            &self.website,
            &self.picture,
        ]
    }

    /// Creates a point from fields in the order of their names.
    #[must_use]
    pub fn of(fields: [String; POINT_FIELDS]) -> Self {
        let [
            id,
            name,
            category,
            description,
            address,
            city,
            country,
            latitude,
            longitude,
            hours,
            phone,
            website,
            picture,
        ] = fields;
        Self {
            id,
            name,
            category,
            description,
            address,
            city,
            country,
            latitude,
            longitude,
            hours,
            phone,
            website,
            picture,
        }
    }
}

impl Content {
    /// Counts the entries: numbers, texts, objects or points; a payload is one.
    #[must_use]
    pub fn entries(&self) -> usize {
        match self {
            Self::Payload(_) => 1,
            Self::Numbers(numbers) => numbers.len(),
            Self::Texts(texts) => texts.len(),
            Self::Objects(objects) => objects.len(),
            Self::Points(points) => points.len(),
        }
    }
}
