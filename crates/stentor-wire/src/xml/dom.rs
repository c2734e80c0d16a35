//! Documents as trees, read and written.

use super::sax::{self, Handler};
use super::{Attribute, Tag, Writer, find};
use crate::{DocumentLimits, WireError};

/// The namespace of `xml:lang` and its like; its prefix is never declared and cannot be another (Namespaces in XML 1.0, section 3).
const XML_NAMESPACE: &str = "http://www.w3.org/XML/1998/namespace";

/// An element with its content.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Element {
    /// The namespace, if there is one.
    pub namespace: Option<String>,
    /// The name without a prefix.
    pub name: String,
    /// The attributes, without declarations of namespaces.
    pub attributes: Vec<Attribute>,
    /// Its content, in order.
    pub children: Vec<Node>,
}

/// A part of an element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    /// An element.
    Element(Element),
    /// Text; two pieces of text are never adjacent.
    Text(String),
}

/// Reads a document into a tree.
pub fn parse(bytes: &[u8], limits: &DocumentLimits) -> Result<Element, WireError> {
    let mut builder = Builder::default();
    sax::parse(bytes, limits, &mut builder)?;
    builder.root.ok_or_else(|| WireError::missing("a root"))
}

impl Element {
    /// Creates an element without a namespace.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// Creates an element of a namespace.
    #[must_use]
    pub fn of(namespace: &str, name: &str) -> Self {
        Self { namespace: Some(namespace.to_owned()), ..Self::new(name) }
    }

    /// Adds an element.
    #[must_use]
    pub fn with(mut self, child: Self) -> Self {
        self.children.push(Node::Element(child));
        self
    }

    /// Adds text.
    #[must_use]
    pub fn with_text(mut self, text: &str) -> Self {
        self.push_text(text);
        self
    }

    /// Adds an attribute without a namespace.
    #[must_use]
    pub fn with_attribute(mut self, name: &str, value: &str) -> Self {
        self.attributes.push(Attribute { namespace: None, name: name.into(), value: value.into() });
        self
    }

    /// Returns true if it is this element of this namespace.
    #[must_use]
    pub fn is(&self, namespace: &str, name: &str) -> bool {
        self.namespace.as_deref() == Some(namespace) && self.name == name
    }

    /// Lists the elements inside.
    pub fn elements(&self) -> impl Iterator<Item = &Self> {
        self.children.iter().filter_map(|node| match node {
            Node::Element(element) => Some(element),
            Node::Text(_) => None,
        })
    }

    /// Returns the first child element with a name, in any namespace.
    #[must_use]
    pub fn element(&self, name: &str) -> Option<&Self> {
        self.elements().find(|element| element.name == name)
    }

    /// Returns the value of an attribute without a namespace.
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<&str> {
        find(&self.attributes, None, name)
    }

    /// Returns the value of an attribute in a namespace.
    #[must_use]
    pub fn attribute_in(&self, namespace: &str, name: &str) -> Option<&str> {
        find(&self.attributes, Some(namespace), name)
    }

    /// Concatenates the direct text content.
    #[must_use]
    pub fn text(&self) -> String {
        let texts = self.children.iter().map(|node| match node {
            Node::Text(text) => text.as_str(),
            Node::Element(_) => "",
        });
        texts.collect()
    }

    /// Writes it as a document.
    pub fn to_bytes(&self) -> Result<Vec<u8>, WireError> {
        let mut writer = Writer::document();
        self.write(&mut writer, None)?;
        Ok(writer.finish())
    }

    /// Writes it inside an element with the default namespace `outside`.
    pub(crate) fn write(&self, writer: &mut Writer, outside: Option<&str>) -> Result<(), WireError> {
        let namespace = self.namespace.as_deref();
        let inside = if namespace == Some(XML_NAMESPACE) {
            writer.open(&format!("xml:{}", self.name))?;
            outside
        } else {
            writer.open(&self.name)?;
            namespace
        };
        if inside != outside {
            writer.attribute("xmlns", inside.unwrap_or_default())?;
        }
        for (place, attribute) in self.attributes.iter().enumerate() {
            match &attribute.namespace {
                None => writer.attribute(&attribute.name, &attribute.value)?,
                Some(namespace) if namespace == XML_NAMESPACE => {
                    writer.attribute(&format!("xml:{}", attribute.name), &attribute.value)?;
                }
                Some(namespace) => {
                    writer.attribute(&format!("xmlns:a{place}"), namespace)?;
                    writer.attribute(&format!("a{place}:{}", attribute.name), &attribute.value)?;
                }
            }
        }
        for node in &self.children {
            match node {
                Node::Element(element) => element.write(writer, inside)?,
                Node::Text(text) => writer.text(text)?,
            }
        }
        writer.close();
        Ok(())
    }

    fn push_text(&mut self, text: &str) {
        match self.children.last_mut() {
            Some(Node::Text(before)) => before.push_str(text),
            _ if text.is_empty() => {}
            _ => self.children.push(Node::Text(text.to_owned())),
        }
    }
}

/// Builds the tree, with a stack of open elements.
#[derive(Default)]
struct Builder {
    open: Vec<Element>,
    root: Option<Element>,
}

impl Handler for Builder {
    fn start(&mut self, tag: &Tag) -> Result<(), WireError> {
        let Tag { namespace, name, attributes } = tag.clone();
        self.open.push(Element { namespace, name: name.into_owned(), attributes, children: Vec::new() });
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<(), WireError> {
        if let Some(element) = self.open.last_mut() {
            element.push_text(text);
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), WireError> {
        let Some(done) = self.open.pop() else { return Ok(()) };
        match self.open.last_mut() {
            Some(outside) => outside.children.push(Node::Element(done)),
            None => self.root = Some(done),
        }
        Ok(())
    }
}
