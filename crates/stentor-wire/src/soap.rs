//! SOAP 1.1 and 1.2: envelopes, header blocks, faults, and the HTTP headers around them.

mod read;
mod write;

use crate::xml::dom::Element;
use crate::{Content, WireError};

pub use read::read;
pub use write::write;

/// Namespace of envelopes of SOAP 1.1.
pub const NAMESPACE_11: &str = "http://schemas.xmlsoap.org/soap/envelope/";
/// Namespace of envelopes of SOAP 1.2.
pub const NAMESPACE_12: &str = "http://www.w3.org/2003/05/soap-envelope";
/// Suffix of a response's name, after the name of the operation.
const RESPONSE: &str = "Response";

/// A version of SOAP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// SOAP 1.1.
    V11,
    /// SOAP 1.2.
    V12,
}

/// An envelope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    /// Its version.
    pub version: Version,
    /// Its header blocks.
    pub headers: Vec<HeaderBlock>,
    /// Its body.
    pub body: SoapBody,
}

/// A header block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderBlock {
    /// The element.
    pub element: Element,
    /// True if a receiver that does not understand it must refuse the envelope.
    pub must_understand: bool,
}

/// The content of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SoapBody {
    /// Elements of an application.
    Elements(Vec<Element>),
    /// A fault.
    Fault(SoapFault),
}

/// The error of a failed call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SoapFault {
    /// The cause of the error.
    pub code: SoapFaultCode,
    /// A sentence for people.
    pub reason: String,
    /// Elements for the application.
    pub detail: Vec<Element>,
}

/// The cause of a fault; the names are those of SOAP 1.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SoapFaultCode {
    /// The envelope has another version.
    VersionMismatch,
    /// A header block must be understood and is not.
    MustUnderstand,
    /// The sender made a mistake; `Client` in SOAP 1.1.
    Sender,
    /// The receiver cannot do it at present; `Server` in SOAP 1.1.
    Receiver,
}

impl Version {
    /// Returns the namespace of envelopes.
    #[must_use]
    pub const fn namespace(self) -> &'static str {
        match self {
            Self::V11 => NAMESPACE_11,
            Self::V12 => NAMESPACE_12,
        }
    }

    /// Returns the value of `Content-Type`; SOAP 1.2 names the action in it, SOAP 1.1 in a `SOAPAction` header.
    #[must_use]
    pub fn content_type(self, action: &str) -> String {
        match self {
            Self::V11 => "text/xml; charset=utf-8".into(),
            Self::V12 if action.is_empty() => "application/soap+xml; charset=utf-8".into(),
            Self::V12 => {
                let quoted = action.replace('\\', "\\\\").replace('"', "\\\"");
                format!("application/soap+xml; charset=utf-8; action=\"{quoted}\"")
            }
        }
    }
}

/// Returns the action of a request: the `SOAPAction` header of SOAP 1.1, or the parameter of the content type.
#[must_use]
pub fn action(content_type: &str, soap_action: Option<&str>) -> Option<String> {
    let header = soap_action.map(str::trim).filter(|action| !action.is_empty());
    let parameter = || {
        let mut parameters = content_type.split(';').skip(1).map(str::trim);
        parameters.find_map(|one| one.strip_prefix("action="))
    };
    header.or_else(parameter).map(|action| action.trim_matches('"').to_owned())
}

impl Envelope {
    /// Creates an envelope around elements.
    #[must_use]
    pub const fn around(version: Version, elements: Vec<Element>) -> Self {
        Self { version, headers: Vec::new(), body: SoapBody::Elements(elements) }
    }

    /// Creates the request of an operation, wrapped in an element of its name.
    #[must_use]
    pub fn request(version: Version, namespace: &str, operation: &str, content: &Content) -> Self {
        let wrapper = Element::of(namespace, operation).with(content.to_element(Some(namespace)));
        Self::around(version, vec![wrapper])
    }

    /// Creates the response of an operation, wrapped in an element of its name and `Response`.
    #[must_use]
    pub fn response(version: Version, namespace: &str, operation: &str, content: &Content) -> Self {
        Self::request(version, namespace, &format!("{operation}{RESPONSE}"), content)
    }

    /// Creates an envelope around a fault.
    #[must_use]
    pub const fn fault(version: Version, fault: SoapFault) -> Self {
        Self { version, headers: Vec::new(), body: SoapBody::Fault(fault) }
    }

    /// Extracts the content from a request of an operation.
    pub fn request_content(&self, namespace: &str, operation: &str) -> Result<Content, WireError> {
        let SoapBody::Elements(elements) = &self.body else {
            return Err(WireError::Unexpected("a fault where a call was expected".into()));
        };
        let [wrapper] = &elements[..] else { return Err(WireError::missing("one element in the body")) };
        if !wrapper.is(namespace, operation) {
            return Err(WireError::unexpected(&wrapper.name, operation));
        }
        let inside: Vec<&Element> = wrapper.elements().collect();
        let [content] = inside[..] else { return Err(WireError::missing("one element of content")) };
        crate::content::dom::content(content)
    }

    /// Extracts the content, or the fault, from a response of an operation.
    pub fn response_content(
        &self,
        namespace: &str,
        operation: &str,
    ) -> Result<Result<Content, SoapFault>, WireError> {
        match &self.body {
            SoapBody::Fault(fault) => Ok(Err(fault.clone())),
            SoapBody::Elements(_) => {
                self.request_content(namespace, &format!("{operation}{RESPONSE}")).map(Ok)
            }
        }
    }
}

impl SoapFault {
    /// Creates a fault without detail.
    #[must_use]
    pub fn new(code: SoapFaultCode, reason: impl Into<String>) -> Self {
        Self { code, reason: reason.into(), detail: Vec::new() }
    }

    /// Creates the fault that reports an error in the sender's bytes.
    #[must_use]
    pub fn of_error(error: &WireError) -> Self {
        let code = match error {
            WireError::SoapVersion => SoapFaultCode::VersionMismatch,
            WireError::NotUnderstood(_) => SoapFaultCode::MustUnderstand,
            _ => SoapFaultCode::Sender,
        };
        Self::new(code, error.to_string())
    }
}

impl SoapFaultCode {
    const ALL: [Self; 4] = [Self::VersionMismatch, Self::MustUnderstand, Self::Sender, Self::Receiver];

    /// Returns the name in a version of SOAP.
    #[must_use]
    pub const fn name(self, version: Version) -> &'static str {
        match (self, version) {
            (Self::VersionMismatch, _) => "VersionMismatch",
            (Self::MustUnderstand, _) => "MustUnderstand",
            (Self::Sender, Version::V11) => "Client",
            (Self::Sender, Version::V12) => "Sender",
            (Self::Receiver, Version::V11) => "Server",
            (Self::Receiver, Version::V12) => "Receiver",
        }
    }

    /// Parses the name in a fault: with a prefix, and in SOAP 1.1 perhaps with a suffix behind a dot. An unknown name counts as the
    /// receiver's fault.
    fn read(text: &str, version: Version) -> Self {
        let local = text.trim().rsplit(':').next().unwrap_or_default();
        let name = local.split('.').next().unwrap_or_default();
        Self::ALL.into_iter().find(|code| code.name(version) == name).unwrap_or(Self::Receiver)
    }
}
