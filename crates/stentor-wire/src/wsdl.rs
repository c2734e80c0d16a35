//! WSDL 1.1 of a service with operations that carry [`Content`](crate::Content) both ways, and the parts of a foreign one that a caller
//! needs.

use crate::xml::Writer;
use crate::xml::dom::{Element, parse};
use crate::{DocumentLimits, WireError};

/// The namespace of WSDL 1.1.
pub const WSDL: &str = "http://schemas.xmlsoap.org/wsdl/";
const BINDING_11: &str = "http://schemas.xmlsoap.org/wsdl/soap/";
const BINDING_12: &str = "http://schemas.xmlsoap.org/wsdl/soap12/";
const OVER_HTTP: &str = "http://schemas.xmlsoap.org/soap/http";
const SCHEMA: &str = "http://www.w3.org/2001/XMLSchema";
/// The written bindings: the prefix of their elements, and the suffix of their names.
const BINDINGS: [(&str, &str); 2] = [("soap11", "Soap11"), ("soap12", "Soap12")];
/// Declarations of content, inside the schema.
const CONTENT: &str = include_str!("../schema/content.xsd");

/// A service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// Its name.
    pub name: String,
    /// The namespace of its operations.
    pub namespace: String,
    /// Its address.
    pub address: String,
    /// Its operations.
    pub operations: Vec<Operation>,
}

/// An operation: content in, content out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// Its name, which is also the name of the element around a request.
    pub name: String,
    /// Its SOAP action.
    pub action: String,
}

/// Writes the description of a service, with bindings for SOAP 1.1 and 1.2, document style.
pub fn write(service: &Service) -> Result<Vec<u8>, WireError> {
    let mut writer = Writer::document();
    writer.open("wsdl:definitions")?;
    writer.attribute("name", &service.name)?;
    writer.attribute("targetNamespace", &service.namespace)?;
    let prefixes = [
        ("wsdl", WSDL),
        ("soap11", BINDING_11),
        ("soap12", BINDING_12),
        ("xsd", SCHEMA),
        ("tns", &service.namespace),
    ];
    prefixes
        .iter()
        .try_for_each(|(prefix, namespace)| writer.attribute(&format!("xmlns:{prefix}"), namespace))?;
    types(&mut writer, service)?;
    service.operations.iter().try_for_each(|operation| messages(&mut writer, operation))?;
    port_type(&mut writer, service)?;
    BINDINGS.iter().try_for_each(|(prefix, suffix)| binding(&mut writer, service, prefix, suffix))?;
    ports(&mut writer, service)?;
    Ok(writer.finish())
}

/// Reads the name, namespace, first address and operations of a service; ignores types.
pub fn read(bytes: &[u8], limits: &DocumentLimits) -> Result<Service, WireError> {
    let root = parse(bytes, limits)?;
    if !root.is(WSDL, "definitions") {
        return Err(WireError::unexpected(&root.name, "definitions of WSDL 1.1"));
    }
    let attribute = |element: &Element, name: &str| {
        element.attribute(name).map(str::to_owned).ok_or_else(|| WireError::missing(name))
    };
    let service = root.element("service").ok_or_else(|| WireError::missing("service"))?;
    let mut addresses = service.elements().filter_map(|port| port.element("address"));
    let address = addresses.next().ok_or_else(|| WireError::missing("address"))?;
    let binding = root.element("binding").ok_or_else(|| WireError::missing("binding"))?;
    let operations = binding.elements().filter(|element| element.is(WSDL, "operation"));
    let operation = |element: &Element| {
        let inner = element.elements().find(|inner| inner.name == "operation");
        let action = inner.and_then(|inner| inner.attribute("soapAction")).unwrap_or_default().to_owned();
        Ok(Operation { name: attribute(element, "name")?, action })
    };
    Ok(Service {
        name: attribute(service, "name")?,
        namespace: attribute(&root, "targetNamespace")?,
        address: attribute(address, "location")?,
        operations: operations.map(operation).collect::<Result<_, WireError>>()?,
    })
}

/// Begins an element with attributes.
fn open(writer: &mut Writer, name: &str, attributes: &[(&str, &str)]) -> Result<(), WireError> {
    writer.open(name)?;
    attributes.iter().try_for_each(|(name, value)| writer.attribute(name, value))
}

/// Writes an element with attributes and nothing inside.
fn empty(writer: &mut Writer, name: &str, attributes: &[(&str, &str)]) -> Result<(), WireError> {
    open(writer, name, attributes)?;
    writer.close();
    Ok(())
}

fn types(writer: &mut Writer, service: &Service) -> Result<(), WireError> {
    writer.open("wsdl:types")?;
    let qualified = [("targetNamespace", service.namespace.as_str()), ("elementFormDefault", "qualified")];
    open(writer, "xsd:schema", &qualified)?;
    writer.verbatim(CONTENT);
    for operation in &service.operations {
        for name in [operation.name.clone(), format!("{}Response", operation.name)] {
            open(writer, "xsd:element", &[("name", &name)])?;
            writer.open("xsd:complexType")?;
            writer.open("xsd:sequence")?;
            empty(writer, "xsd:group", &[("ref", "tns:content")])?;
            writer.close();
            writer.close();
            writer.close();
        }
    }
    writer.close();
    writer.close();
    Ok(())
}

fn messages(writer: &mut Writer, operation: &Operation) -> Result<(), WireError> {
    let name = &operation.name;
    let both = [(format!("{name}Input"), name.clone()), (format!("{name}Output"), format!("{name}Response"))];
    for (message, element) in both {
        open(writer, "wsdl:message", &[("name", &message)])?;
        empty(writer, "wsdl:part", &[("name", "parameters"), ("element", &format!("tns:{element}"))])?;
        writer.close();
    }
    Ok(())
}

fn port_type(writer: &mut Writer, service: &Service) -> Result<(), WireError> {
    open(writer, "wsdl:portType", &[("name", &format!("{}PortType", service.name))])?;
    for Operation { name, .. } in &service.operations {
        open(writer, "wsdl:operation", &[("name", name)])?;
        empty(writer, "wsdl:input", &[("message", &format!("tns:{name}Input"))])?;
        empty(writer, "wsdl:output", &[("message", &format!("tns:{name}Output"))])?;
        writer.close();
    }
    writer.close();
    Ok(())
}

fn binding(writer: &mut Writer, service: &Service, prefix: &str, suffix: &str) -> Result<(), WireError> {
    let (name, kind) = (format!("{}{suffix}", service.name), format!("tns:{}PortType", service.name));
    open(writer, "wsdl:binding", &[("name", &name), ("type", &kind)])?;
    empty(writer, &format!("{prefix}:binding"), &[("style", "document"), ("transport", OVER_HTTP)])?;
    for operation in &service.operations {
        open(writer, "wsdl:operation", &[("name", &operation.name)])?;
        empty(
            writer,
            &format!("{prefix}:operation"),
            &[("soapAction", &operation.action), ("style", "document")],
        )?;
        for direction in ["wsdl:input", "wsdl:output"] {
            writer.open(direction)?;
            empty(writer, &format!("{prefix}:body"), &[("use", "literal")])?;
            writer.close();
        }
        writer.close();
    }
    writer.close();
    Ok(())
}

fn ports(writer: &mut Writer, service: &Service) -> Result<(), WireError> {
    open(writer, "wsdl:service", &[("name", &service.name)])?;
    for (prefix, suffix) in BINDINGS {
        let name = format!("{}{suffix}", service.name);
        open(writer, "wsdl:port", &[("name", &format!("{name}Port")), ("binding", &format!("tns:{name}"))])?;
        empty(writer, &format!("{prefix}:address"), &[("location", &service.address)])?;
        writer.close();
    }
    writer.close();
    Ok(())
}
