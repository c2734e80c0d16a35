//! One page of a list as a face replies with it: members of a group, or topics.

use anyhow::{Context, bail};
use serde::Deserialize;
use stentor_wire::xml::dom::{self, Element};
use stentor_wire::{DocumentLimits, Item, Value, xmlrpc};

/// A page of a list, and where the next one begins.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct ListPage {
    /// External ids of people, where members were asked for.
    pub(crate) users: Vec<String>,
    /// Topics as objects: how many devices, and the name.
    pub(crate) topics: Vec<Item>,
    /// The cursor; absent on the last page.
    pub(crate) next: Option<String>,
}

#[derive(Deserialize)]
struct JsonPage {
    #[serde(default)]
    users: Vec<String>,
    #[serde(default)]
    topics: Vec<JsonTopic>,
    #[serde(default)]
    next: Option<String>,
}

#[derive(Deserialize)]
struct JsonTopic {
    name: String,
    device_count: i64,
}

impl ListPage {
    /// Reads the reply of a face; a fault is an error with its text.
    pub(crate) fn read(face: &str, reply: &[u8]) -> anyhow::Result<Self> {
        match face {
            "soap" => Self::of_envelope(&dom::parse(reply, &DocumentLimits::default())?),
            "xmlrpc" => match xmlrpc::read_response(reply, &DocumentLimits::default())? {
                Ok(value) => Self::of_value(&value),
                Err(fault) => bail!("a fault: {fault}"),
            },
            _ => Ok(Self::of_json(serde_json::from_slice(reply)?)),
        }
    }

    fn of_json(page: JsonPage) -> Self {
        let topics = page.topics.into_iter().map(|topic| object(topic.name, topic.device_count));
        Self { users: page.users, topics: topics.collect(), next: page.next }
    }

    fn of_envelope(envelope: &Element) -> anyhow::Result<Self> {
        let reply = envelope.element("Body").and_then(|body| body.elements().next());
        let record = reply.and_then(|reply| reply.element("return"));
        let record = record.with_context(|| format!("no reply: {reply:?}"))?;
        let mut page = Self::default();
        for field in record.elements() {
            match field.name.as_str() {
                "users" => page.users.push(field.text()),
                "topics" => page.topics.push(topic_of_element(field)?),
                "next" => page.next = Some(field.text()),
                _ => {}
            }
        }
        Ok(page)
    }

    fn of_value(value: &Value) -> anyhow::Result<Self> {
        let list = |name: &str| match value.get(name) {
            Some(Value::List(items)) => items.as_slice(),
            _ => &[],
        };
        let users = list("users").iter().map(|user| Some(user.as_text()?.to_owned()));
        let topics = list("topics").iter().map(|topic| {
            Some(object(topic.get("name")?.as_text()?.to_owned(), topic.get("device_count")?.as_int()?))
        });
        Ok(Self {
            users: users.collect::<Option<_>>().context("a user is no text")?,
            topics: topics.collect::<Option<_>>().context("a topic lacks its name or its count")?,
            next: value.get("next").and_then(Value::as_text).map(str::to_owned),
        })
    }
}

fn topic_of_element(topic: &Element) -> anyhow::Result<Item> {
    let field = |name: &str| topic.element(name).map(Element::text).context("a topic lacks a field");
    Ok(object(field("name")?, field("device_count")?.parse()?))
}

const fn object(name: String, id: i64) -> Item {
    Item { id, name, price: 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_the_same_through_every_face() {
        let json = br#"{"topics":[{"name":"news","device_count":3}],"next":"news"}"#;
        let soap = br#"<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><ListTopicsResponse
            xmlns="urn:stentor:v1"><return><topics><name>news</name><device_count>3</device_count></topics><next>news</next>
            </return></ListTopicsResponse></s:Body></s:Envelope>"#;
        let xmlrpc = b"<methodResponse><params><param><value><struct><member><name>next</name><value>news</value></member>\
            <member><name>topics</name><value><array><data><value><struct><member><name>device_count</name><value><int>3</int>\
            </value></member><member><name>name</name><value>news</value></member></struct></value></data></array></value>\
            </member></struct></value></param></params></methodResponse>";
        let wanted = ListPage {
            users: Vec::new(),
            topics: vec![object("news".to_owned(), 3)],
            next: Some("news".to_owned()),
        };
        for (face, reply) in [("rest", &json[..]), ("soap", soap), ("xmlrpc", xmlrpc)] {
            assert_eq!(ListPage::read(face, reply).unwrap(), wanted, "{face}");
        }
    }

    #[test]
    fn a_fault_is_no_page() {
        let fault = br#"<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><s:Fault>
            <faultcode>s:Client</faultcode><faultstring>unauthorized</faultstring></s:Fault></s:Body></s:Envelope>"#;
        assert!(ListPage::read("soap", fault).unwrap_err().to_string().contains("unauthorized"));
    }
}
