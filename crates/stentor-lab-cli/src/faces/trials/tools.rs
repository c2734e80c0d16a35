//! Tools: a client that is generated from a description alone, and calls the server.

use super::{FaceUnderTrial, TrialVerdict, is, word};
use serde_json::Value;
use stentor_lab::probes::{PaperProtocol, ProbeWord};
use stentor_wire::soap::{self, Envelope, SoapBody, Version};
use stentor_wire::xml::dom::{self, Element};
use stentor_wire::xmlrpc::{Call, read_response, write_call};
use stentor_wire::{DocumentLimits, Value as RpcValue, wsdl};

/// Types of XML Schema that are whole numbers.
const WHOLE: [&str; 3] = ["xsd:long", "xsd:int", "xsd:integer"];
/// Prefix of methods that read data of an app; the rest of the name is read.
const NOUN: &str = "topics.";

/// A described operation that can be called with a number alone.
struct DescribedCall {
    name: String,
    number: String,
    address: String,
}

impl FaceUnderTrial {
    /// Reads the description, builds a call from it and sends it.
    pub(super) async fn tools(&self) -> TrialVerdict {
        match self.protocol {
            PaperProtocol::Soap => self.wsdl_client().await,
            PaperProtocol::XmlRpc => self.signature_client().await,
            PaperProtocol::Rest => self.openapi_client().await,
        }
    }

    async fn wsdl_client(&self) -> TrialVerdict {
        let root = dom::parse(&self.get("/soap?wsdl").await?.body, &DocumentLimits::default())?;
        let Some(call) = described(&root) else {
            return word(ProbeWord::No, "the WSDL names no operation that a number is enough for");
        };
        let namespace = root.attribute("targetNamespace").unwrap_or_default();
        let number = Element::of(namespace, &call.number).with_text("1");
        let envelope = Envelope::around(Version::V11, vec![Element::of(namespace, &call.name).with(number)]);
        let request = self.http.post(&call.address).header("Content-Type", "text/xml");
        let reply = self.send(request.body(soap::write(&envelope)?)).await?;
        let answered = match soap::read(&reply.body, &DocumentLimits::default(), &[])?.body {
            SoapBody::Elements(elements) => {
                elements.iter().any(|one| one.is(namespace, &format!("{}Response", call.name)))
            }
            SoapBody::Fault(_) => false,
        };
        is(
            answered,
            format!(
                "{} with {}=1, all of it read from the WSDL, at its address gets {}",
                call.name, call.number, reply.status
            ),
        )
    }

    async fn signature_client(&self) -> TrialVerdict {
        let Ok(RpcValue::List(names)) = self.called("system.listMethods", vec![]).await? else {
            return word(ProbeWord::No, "system.listMethods gives no list");
        };
        for name in names.iter().filter_map(RpcValue::as_text).filter(|name| name.starts_with(NOUN)) {
            let Ok(RpcValue::List(ways)) = self.called("system.methodSignature", vec![name.into()]).await?
            else {
                continue;
            };
            // The first kind is the return type: a signature of one kind has no parameters.
            if ways.iter().any(|way| matches!(way, RpcValue::List(kinds) if kinds.len() == 1)) {
                let reply = self.called(name, vec![]).await?;
                let answer = if reply.is_ok() { "is answered" } else { "is refused" };
                let rest = "which fields a struct has stands in system.methodHelp as text";
                return is(
                    reply.is_ok(),
                    format!("{name}, listed and by its signature without parameters, {answer}; {rest}"),
                );
            }
        }
        word(ProbeWord::No, "signatures say struct and not which fields")
    }

    /// Calls a method; a fault is returned as its text.
    async fn called(&self, method: &str, params: Vec<RpcValue>) -> anyhow::Result<Result<RpcValue, String>> {
        let call = write_call(&Call { method: method.to_owned(), params })?;
        let reply = self.post(String::from_utf8(call)?).await?;
        let outcome = read_response(&reply.body, &DocumentLimits::default())?;
        Ok(outcome.map_err(|fault| fault.to_string()))
    }

    async fn openapi_client(&self) -> TrialVerdict {
        let document: Value = serde_json::from_slice(&self.get("/openapi.json").await?.body)?;
        let paths = document["paths"].as_object().into_iter().flatten();
        let mut found = paths.filter_map(|(path, methods)| {
            let parameters = methods["get"]["parameters"].as_array()?;
            let is_number =
                |one: &&Value| one["in"] == "query" && one["schema"]["type"].to_string().contains("integer");
            let name = parameters.iter().find(is_number)?["name"].as_str()?;
            (!path.contains('{')).then(|| format!("{path}?{name}=1"))
        });
        let Some(target) = found.next() else {
            return word(ProbeWord::No, "OpenAPI names no address that a number is enough for");
        };
        let reply = self.get(&target).await?;
        let is_answered = !reply.is_refusal() && serde_json::from_slice::<Value>(&reply.body).is_ok();
        is(is_answered, format!("GET {target}, read from OpenAPI, gets {}", reply.status))
    }
}

/// Finds the first operation with optional fields only, one of them a whole number.
fn described(root: &Element) -> Option<DescribedCall> {
    let address = root.element("service")?.element("port")?.element("address")?.attribute("location")?;
    let declared = root.element("types")?.element("schema")?.elements();
    let calls = declared.filter_map(|declared| {
        let fields = declared.element("complexType")?.element("sequence")?;
        let is_optional = |field: &Element| field.attribute("minOccurs") == Some("0");
        let is_whole = |field: &&Element| field.attribute("type").is_some_and(|kind| WHOLE.contains(&kind));
        let number = fields.elements().find(is_whole)?.attribute("name")?;
        let name = declared.attribute("name")?;
        fields.elements().all(is_optional).then(|| (name.to_owned(), number.to_owned()))
    });
    let operations = root.elements().filter(|one| one.is(wsdl::WSDL, "portType")).flat_map(Element::elements);
    let names: Vec<_> = operations.filter_map(|one| one.attribute("name")).collect();
    let (name, number) = calls.into_iter().find(|(name, _)| names.contains(&name.as_str()))?;
    Some(DescribedCall { name, number, address: address.to_owned() })
}
