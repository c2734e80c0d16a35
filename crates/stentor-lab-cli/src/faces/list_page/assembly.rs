//! A page assembled from the elements of its XML, independent of the parser: REST's record, or the record in a SOAP envelope.

use super::{ListPage, ListedDevice, object};
use anyhow::bail;
use stentor_wire::xml::Tag;
use stentor_wire::xml::dom::Element;
use stentor_wire::xml::pull::Pull;
use stentor_wire::xml::sax::Handler;
use stentor_wire::{DocumentLimits, WireError};

/// Meaning of an element of a page, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PageElement {
    Devices,
    Topics,
    Users,
    User,
    Tags,
    Name,
    Count,
    Next,
    Fault,
    Other,
}

/// The page read so far.
#[derive(Default)]
pub(super) struct PageAssembly {
    page: ListPage,
    /// Open elements, the outermost first.
    open: Vec<PageElement>,
    /// Text of the innermost element.
    text: String,
    /// The present topic: its name and its count.
    topic: (String, i64),
    fault: Option<String>,
}

impl PageElement {
    fn named(name: &str) -> Self {
        match name {
            "devices" => Self::Devices,
            "topics" => Self::Topics,
            "users" => Self::Users,
            "user" => Self::User,
            "tags" => Self::Tags,
            "name" => Self::Name,
            "device_count" => Self::Count,
            "next" => Self::Next,
            "faultstring" => Self::Fault,
            _ => Self::Other,
        }
    }
}

impl Handler for PageAssembly {
    fn start(&mut self, tag: &Tag) -> Result<(), WireError> {
        self.begin(PageElement::named(&tag.name));
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<(), WireError> {
        self.text.push_str(text);
        Ok(())
    }

    fn end(&mut self) -> Result<(), WireError> {
        self.finish()
    }
}

impl PageAssembly {
    /// Reads a tree, from its root down.
    pub(super) fn of_tree(root: &Element) -> anyhow::Result<ListPage> {
        let mut assembly = Self::default();
        assembly.walk(root)?;
        assembly.page()
    }

    /// Reads a document on demand, and skips elements that a page does not need.
    pub(super) fn of_text(text: &str, limits: &DocumentLimits) -> anyhow::Result<ListPage> {
        let mut pull = Pull::new(text, limits);
        let mut assembly = Self::default();
        pull.child()?;
        assembly.children(&mut pull)?;
        pull.finish()?;
        assembly.page()
    }

    /// Returns the page; a fault is an error with its text.
    pub(super) fn page(self) -> anyhow::Result<ListPage> {
        match self.fault {
            Some(fault) => bail!("a fault: {fault}"),
            None => Ok(self.page),
        }
    }

    fn walk(&mut self, element: &Element) -> Result<(), WireError> {
        self.begin(PageElement::named(&element.name));
        let mut children = element.elements().peekable();
        if children.peek().is_none() {
            self.text = element.text();
        }
        for child in children {
            self.walk(child)?;
        }
        self.finish()
    }

    fn children(&mut self, pull: &mut Pull<'_>) -> Result<(), WireError> {
        while let Some(tag) = pull.child()? {
            match PageElement::named(&tag.name) {
                PageElement::Other => pull.skip()?,
                part => {
                    self.begin(part);
                    if matches!(part, PageElement::Devices | PageElement::Topics) {
                        self.children(pull)?;
                    } else {
                        self.text.push_str(&pull.text()?);
                    }
                    self.finish()?;
                }
            }
        }
        Ok(())
    }

    fn begin(&mut self, part: PageElement) {
        self.text.clear();
        match part {
            PageElement::Devices => self.page.devices.push(ListedDevice::default()),
            PageElement::Topics => self.topic = (String::new(), 0),
            _ => {}
        }
        self.open.push(part);
    }

    /// Handles the end of the innermost element, with its text complete.
    fn finish(&mut self) -> Result<(), WireError> {
        let Some(part) = self.open.pop() else { return Ok(()) };
        let (outer, text) = (self.open.last().copied(), std::mem::take(&mut self.text));
        match (outer, part) {
            (Some(PageElement::Devices), PageElement::User) => self.device(|device| device.user = text),
            (Some(PageElement::Devices), PageElement::Tags) => self.device(|device| device.tags.push(text)),
            (Some(PageElement::Topics), PageElement::Name) => self.topic.0 = text,
            (Some(PageElement::Topics), PageElement::Count) => {
                let wrong = |_| WireError::Unexpected(format!("{text:?} where a number belongs"));
                self.topic.1 = text.parse().map_err(wrong)?;
            }
            (_, PageElement::Topics) => {
                let (name, count) = std::mem::take(&mut self.topic);
                self.page.topics.push(object(name, count));
            }
            (_, PageElement::Users) => self.page.users.push(text),
            (_, PageElement::Next) => self.page.next = Some(text),
            (_, PageElement::Fault) => self.fault = Some(text),
            _ => {}
        }
        Ok(())
    }

    fn device(&mut self, change: impl FnOnce(&mut ListedDevice)) {
        if let Some(device) = self.page.devices.last_mut() {
            change(device);
        }
    }
}
