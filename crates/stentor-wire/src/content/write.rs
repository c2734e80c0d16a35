//! Content as XML.

use super::{Content, Item, POINT_FIELD_NAMES, Point, names};
use crate::WireError;
use crate::xml::Writer;
use crate::xml::dom::Element;

impl Content {
    /// Writes it as an XML document.
    pub fn to_xml(&self) -> Result<Vec<u8>, WireError> {
        let mut writer = Writer::document();
        self.write(&mut writer, None)?;
        Ok(writer.finish())
    }

    /// Writes it as an element; a namespace applies to all of it.
    pub(crate) fn write(&self, writer: &mut Writer, namespace: Option<&str>) -> Result<(), WireError> {
        writer.open(self.root_name())?;
        if let Some(namespace) = namespace {
            writer.attribute("xmlns", namespace)?;
        }
        match self {
            Self::Payload(text) => writer.text(text)?,
            Self::Numbers(numbers) => {
                numbers.iter().try_for_each(|number| writer.leaf(names::NUMBERS.1, &number.to_string()))?;
            }
            Self::Texts(texts) => texts.iter().try_for_each(|text| writer.leaf(names::TEXTS.1, text))?,
            Self::Objects(items) => items.iter().try_for_each(|item| item.write(writer))?,
            Self::Points(points) => points.iter().try_for_each(|point| point.write(writer))?,
        }
        writer.close();
        Ok(())
    }

    /// Returns the name of its root element.
    pub(crate) const fn root_name(&self) -> &'static str {
        match self {
            Self::Payload(_) => names::PAYLOAD,
            Self::Numbers(_) => names::NUMBERS.0,
            Self::Texts(_) => names::TEXTS.0,
            Self::Objects(_) => names::OBJECTS.0,
            Self::Points(_) => names::POINTS.0,
        }
    }

    /// Converts it to a tree.
    #[must_use]
    pub fn to_element(&self, namespace: Option<&str>) -> Element {
        let element = |name: &str| Element { namespace: namespace.map(str::to_owned), ..Element::new(name) };
        let leaf = |name: &str, text: &str| element(name).with_text(text);
        let root = element(self.root_name());
        match self {
            Self::Payload(text) => root.with_text(text),
            Self::Numbers(numbers) => numbers
                .iter()
                .fold(root, |root, number| root.with(leaf(names::NUMBERS.1, &number.to_string()))),
            Self::Texts(texts) => texts.iter().fold(root, |root, text| root.with(leaf(names::TEXTS.1, text))),
            Self::Objects(items) => items.iter().fold(root, |root, item| {
                let object = element(names::OBJECTS.1).with(leaf("id", &item.id.to_string()));
                let object =
                    object.with(leaf("name", &item.name)).with(leaf("price", &item.price.to_string()));
                root.with(object)
            }),
            Self::Points(points) => points.iter().fold(root, |root, point| {
                let fields = POINT_FIELD_NAMES.iter().zip(point.fields());
                root.with(
                    fields.fold(element(names::POINTS.1), |one, (name, text)| one.with(leaf(name, text))),
                )
            }),
        }
    }
}

impl Item {
    fn write(&self, writer: &mut Writer) -> Result<(), WireError> {
        if !self.price.is_finite() {
            return Err(WireError::Unrepresentable("an infinite number"));
        }
        writer.open(names::OBJECTS.1)?;
        writer.leaf("id", &self.id.to_string())?;
        writer.leaf("name", &self.name)?;
        writer.leaf("price", &self.price.to_string())?;
        writer.close();
        Ok(())
    }
}

impl Point {
    fn write(&self, writer: &mut Writer) -> Result<(), WireError> {
        writer.open(names::POINTS.1)?;
        for (name, text) in POINT_FIELD_NAMES.iter().zip(self.fields()) {
            writer.leaf(name, text)?;
        }
        writer.close();
        Ok(())
    }
}
