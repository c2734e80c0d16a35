//! Names and vocabularies: trials of lists and entries for names of their own, and of elements that no description of the server contains.

use super::{FaceUnderTrial, TOPICS, TrialVerdict, is};
use serde_json::Value;
use stentor_lab::probes::PaperProtocol;
use stentor_wire::DocumentLimits;
use stentor_wire::xml::dom::{self, Element};

/// An element and a member of a vocabulary that the server does not have.
const OWN_ELEMENT: &str = r#"<o:invoice xmlns:o="urn:of:ones:own"><o:total>12</o:total></o:invoice>"#;
const OWN_MEMBER: &str = "<member><name>invoice</name><value><int>12</int></value></member>";
const OWN_FIELD: &str = r#"{"platform":"android","provider":"null","token":"own","invoice":{"total":12}}"#;

impl FaceUnderTrial {
    /// Requests a list of structs and checks for elements or keys that name the list and its entries.
    pub(super) async fn named(&self) -> TrialVerdict {
        let body = self.call(&self.own.call(TOPICS, None)).await?.body;
        if self.protocol == PaperProtocol::Rest {
            let reply: Value = serde_json::from_slice(&body)?;
            let has_list = reply["topics"].as_array().is_some_and(|all| all.iter().all(Value::is_object));
            let list = if has_list { "is the key topics" } else { "has no key" };
            return is(false, format!("the list {list}; its entries are objects without names"));
        }
        let root = dom::parse(&body, &DocumentLimits::default())?;
        let entries = count(&root, &|one| one.name == "topics" && one.element("device_count").is_some());
        is(
            entries as u64 == TOPICS,
            format!(
                "{entries} of {TOPICS} entries are elements named topics, with their fields as elements of their names"
            ),
        )
    }

    /// Sends an element or member that no description of the server contains.
    pub(super) async fn customized(&self) -> TrialVerdict {
        let honest = self.document(&self.own.call(TOPICS, None));
        let reply = self.post(match self.protocol {
            PaperProtocol::Soap => honest.replace("</ListTopics>", &format!("{OWN_ELEMENT}</ListTopics>")),
            PaperProtocol::XmlRpc => honest.replace("</struct>", &format!("{OWN_MEMBER}</struct>")),
            PaperProtocol::Rest => OWN_FIELD.to_owned(),
        });
        let reply = reply.await?;
        let closed = "records hold the fields of their description and no others";
        is(
            !reply.is_refusal(),
            format!("invoice, of a vocabulary of one's own, gets {}; {closed}", reply.summary()),
        )
    }
}

/// Counts the elements of a tree for which a predicate holds.
fn count(element: &Element, holds: &dyn Fn(&Element) -> bool) -> usize {
    usize::from(holds(element)) + element.elements().map(|one| count(one, holds)).sum::<usize>()
}
