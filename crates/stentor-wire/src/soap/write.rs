//! Writing of envelopes.

use super::{Envelope, HeaderBlock, SoapBody, SoapFault, Version};
use crate::WireError;
use crate::xml::Writer;
use crate::xml::dom::Element;

/// Writes an envelope.
pub fn write(envelope: &Envelope) -> Result<Vec<u8>, WireError> {
    let version = envelope.version;
    let mut writer = Writer::document();
    writer.open("soap:Envelope")?;
    writer.attribute("xmlns:soap", version.namespace())?;
    if !envelope.headers.is_empty() {
        writer.open("soap:Header")?;
        envelope.headers.iter().try_for_each(|block| header(&mut writer, block))?;
        writer.close();
    }
    writer.open("soap:Body")?;
    match &envelope.body {
        SoapBody::Elements(elements) => {
            elements.iter().try_for_each(|element| element.write(&mut writer, None))?
        }
        SoapBody::Fault(fault) => write_fault(&mut writer, fault, version)?,
    }
    Ok(writer.finish())
}

fn header(writer: &mut Writer, block: &HeaderBlock) -> Result<(), WireError> {
    let element = &block.element;
    if !block.must_understand {
        return element.write(writer, None);
    }
    // The flag belongs to the namespace of the envelope, with our prefix.
    let mut marked = element.clone();
    marked.attributes.insert(
        0,
        crate::xml::Attribute { namespace: None, name: "soap:mustUnderstand".into(), value: "1".into() },
    );
    marked.write(writer, None)
}

fn write_fault(writer: &mut Writer, fault: &SoapFault, version: Version) -> Result<(), WireError> {
    let code = format!("soap:{}", fault.code.name(version));
    writer.open("soap:Fault")?;
    match version {
        Version::V11 => {
            writer.leaf("faultcode", &code)?;
            writer.leaf("faultstring", &fault.reason)?;
            detail(writer, "detail", &fault.detail)?;
        }
        Version::V12 => {
            writer.open("soap:Code")?;
            writer.leaf("soap:Value", &code)?;
            writer.close();
            writer.open("soap:Reason")?;
            writer.open("soap:Text")?;
            writer.attribute("xml:lang", "en")?;
            writer.text(&fault.reason)?;
            writer.close();
            writer.close();
            detail(writer, "soap:Detail", &fault.detail)?;
        }
    }
    writer.close();
    Ok(())
}

fn detail(writer: &mut Writer, name: &str, elements: &[Element]) -> Result<(), WireError> {
    if elements.is_empty() {
        return Ok(());
    }
    writer.open(name)?;
    elements.iter().try_for_each(|element| element.write(writer, None))?;
    writer.close();
    Ok(())
}
