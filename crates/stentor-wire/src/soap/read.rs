//! Reading of envelopes.

use super::{Envelope, HeaderBlock, NAMESPACE_11, NAMESPACE_12, SoapBody, SoapFault, SoapFaultCode, Version};
use crate::xml::dom::{Element, parse};
use crate::xml::pull::only_space;
use crate::{DocumentLimits, WireError};

/// Reads an envelope. A header block that must be understood has to be among `understood`, as namespace and name.
pub fn read(
    bytes: &[u8],
    limits: &DocumentLimits,
    understood: &[(&str, &str)],
) -> Result<Envelope, WireError> {
    let root = parse(bytes, limits)?;
    if root.name != "Envelope" {
        return Err(WireError::unexpected(&root.name, "an envelope"));
    }
    let version = match root.namespace.as_deref() {
        Some(NAMESPACE_11) => Version::V11,
        Some(NAMESPACE_12) => Version::V12,
        _ => return Err(WireError::SoapVersion),
    };
    only_space(&root.text())?;
    let (headers, body) = parts(&root, version)?;
    let headers = headers.map(|header| blocks(header, version, understood)).transpose()?;
    Ok(Envelope { version, headers: headers.unwrap_or_default(), body: read_body(body, version)? })
}

fn parts(root: &Element, version: Version) -> Result<(Option<&Element>, &Element), WireError> {
    let is = |element: &Element, name: &str| element.is(version.namespace(), name);
    let elements: Vec<&Element> = root.elements().collect();
    match elements[..] {
        [header, body] if is(header, "Header") && is(body, "Body") => Ok((Some(header), body)),
        [body] if is(body, "Body") => Ok((None, body)),
        _ => Err(WireError::missing("a body, and perhaps a header before it")),
    }
}

fn blocks(
    header: &Element,
    version: Version,
    understood: &[(&str, &str)],
) -> Result<Vec<HeaderBlock>, WireError> {
    let block = |element: &Element| {
        let flag = element.attribute_in(version.namespace(), "mustUnderstand").unwrap_or("0");
        let must_understand = ["1", "true"].contains(&flag.trim());
        let is_known = understood.iter().any(|(namespace, name)| element.is(namespace, name));
        if must_understand && is_for_us(element, version) && !is_known {
            return Err(WireError::NotUnderstood(element.name.clone()));
        }
        let mut element = element.clone();
        element.attributes.retain(|one| one.namespace.as_deref() != Some(version.namespace()));
        Ok(HeaderBlock { element, must_understand })
    };
    header.elements().map(block).collect()
}

/// Returns true if the header block is for the final receiver, or for the next, which is the same without intermediaries.
fn is_for_us(element: &Element, version: Version) -> bool {
    let attribute = match version {
        Version::V11 => "actor",
        Version::V12 => "role",
    };
    match element.attribute_in(version.namespace(), attribute) {
        None | Some("") => true,
        Some(role) => role.ends_with("/next") || role.ends_with("/ultimateReceiver"),
    }
}

fn read_body(body: &Element, version: Version) -> Result<SoapBody, WireError> {
    only_space(&body.text())?;
    let elements: Vec<Element> = body.elements().cloned().collect();
    match &elements[..] {
        [fault] if fault.is(version.namespace(), "Fault") => Ok(SoapBody::Fault(read_fault(fault, version)?)),
        _ => Ok(SoapBody::Elements(elements)),
    }
}

fn read_fault(fault: &Element, version: Version) -> Result<SoapFault, WireError> {
    let inside = |element: &Element, name: &str| {
        element.element(name).cloned().ok_or_else(|| WireError::missing(name))
    };
    let (code, reason, detail) = match version {
        Version::V11 => (inside(fault, "faultcode")?, inside(fault, "faultstring")?, fault.element("detail")),
        Version::V12 => {
            let code = inside(&inside(fault, "Code")?, "Value")?;
            (code, inside(&inside(fault, "Reason")?, "Text")?, fault.element("Detail"))
        }
    };
    let detail = detail.map(|detail| detail.elements().cloned().collect());
    let detail = detail.unwrap_or_default();
    Ok(SoapFault { code: SoapFaultCode::read(&code.text(), version), reason: reason.text(), detail })
}
