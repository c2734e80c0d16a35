//! Dialects: a transport and a format, and the encoding of content in them.

use super::SubjectError;
use super::reference::Op;
use stentor_wire::soap::{Envelope, SoapFault, Version};
use stentor_wire::xmlrpc::{CODE_WRONG_PARAMS, Call, RpcFault};
use stentor_wire::{
    Content, DocumentLimits, Item, Point, Value, WireError, content, json, protobuf, soap, xmlrpc,
};

/// Namespace of the laboratory's SOAP operations.
pub const NAMESPACE: &str = "urn:stentor:lab";
/// Prefix of XML-RPC method names before the operation.
pub(super) const METHOD_PREFIX: &str = "lab.";

/// The transport of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubjectTransport {
    /// `POST` over HTTP/1.1.
    Http,
    /// Unary calls over HTTP/2.
    Grpc,
    /// Frames on a socket; the server gives each connection a thread that receives and one that sends.
    SocketThreads,
    /// Frames on a socket; the server gives each connection a task.
    SocketTasks,
}

/// The encoding of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueFormat {
    /// REST with JSON.
    Json,
    /// XML, read with callbacks.
    XmlSax,
    /// XML, read into a tree.
    XmlDom,
    /// XML, read on demand.
    XmlPull,
    /// Protocol Buffers.
    Protobuf,
    /// XML-RPC.
    XmlRpc,
    /// SOAP of a version.
    Soap(Version),
}

/// A transport and a format under a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubjectDialect {
    name: &'static str,
    /// The transport.
    pub transport: SubjectTransport,
    /// The format.
    pub format: ValueFormat,
}

const fn dialect(name: &'static str, transport: SubjectTransport, format: ValueFormat) -> SubjectDialect {
    SubjectDialect { name, transport, format }
}

/// Every dialect that the laboratory can check.
pub const DIALECTS: [SubjectDialect; 11] = [
    dialect("rest+json", SubjectTransport::Http, ValueFormat::Json),
    dialect("rest+xml", SubjectTransport::Http, ValueFormat::XmlPull),
    dialect("rest+xml-sax", SubjectTransport::Http, ValueFormat::XmlSax),
    dialect("rest+xml-dom", SubjectTransport::Http, ValueFormat::XmlDom),
    dialect("rest+protobuf", SubjectTransport::Http, ValueFormat::Protobuf),
    dialect("grpc", SubjectTransport::Grpc, ValueFormat::Protobuf),
    dialect("xmlrpc", SubjectTransport::Http, ValueFormat::XmlRpc),
    dialect("soap", SubjectTransport::Http, ValueFormat::Soap(Version::V11)),
    dialect("soap12", SubjectTransport::Http, ValueFormat::Soap(Version::V12)),
    dialect("socket+xml-sax", SubjectTransport::SocketThreads, ValueFormat::XmlSax),
    dialect("socket+protobuf", SubjectTransport::SocketTasks, ValueFormat::Protobuf),
];

/// Lists the names of all dialects.
#[must_use]
pub fn names() -> String {
    DIALECTS.map(SubjectDialect::name).join(", ")
}

impl SubjectTransport {
    /// Returns the ALPN name of the transport.
    pub(crate) const fn protocol(self) -> &'static [u8] {
        match self {
            Self::Http => b"http/1.1",
            Self::Grpc => b"h2",
            Self::SocketThreads | Self::SocketTasks => b"stentor-lab",
        }
    }
}

impl SubjectDialect {
    /// Finds a dialect by its name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        DIALECTS.into_iter().find(|dialect| dialect.name == name)
    }

    /// Returns its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// Returns the content type of bodies.
    #[must_use]
    pub fn content_type(self, op: Op) -> String {
        match self.format {
            ValueFormat::Json => "application/json".into(),
            ValueFormat::XmlSax | ValueFormat::XmlDom | ValueFormat::XmlPull => "application/xml".into(),
            ValueFormat::Protobuf => "application/x-protobuf".into(),
            ValueFormat::XmlRpc => "text/xml".into(),
            ValueFormat::Soap(version) => version.content_type(&action(op)),
        }
    }

    /// Returns the value of `SOAPAction`, if the dialect has one.
    #[must_use]
    pub fn soap_action(self, op: Op) -> Option<String> {
        (self.format == ValueFormat::Soap(Version::V11)).then(|| format!("\"{}\"", action(op)))
    }

    /// Writes a request.
    pub fn write_request(self, op: Op, content: &Content) -> Result<Vec<u8>, WireError> {
        match self.format {
            ValueFormat::XmlRpc => {
                let method = format!("{METHOD_PREFIX}{}", op.word());
                xmlrpc::write_call(&Call { method, params: vec![to_value(content)] })
            }
            ValueFormat::Soap(version) => {
                soap::write(&Envelope::request(version, NAMESPACE, op.word(), content))
            }
            format => format.write(content),
        }
    }

    /// Reads a request.
    pub fn read_request(self, op: Op, bytes: &[u8]) -> Result<Content, WireError> {
        let limits = DocumentLimits::default();
        match self.format {
            ValueFormat::XmlRpc => {
                let call = xmlrpc::read_call(bytes, &limits)?;
                let [value] = &call.params[..] else { return Err(unexpected("one parameter is wanted")) };
                if call.method.strip_prefix(METHOD_PREFIX) != Some(op.word()) {
                    return Err(unexpected("there is no such method"));
                }
                of_value(value)
            }
            ValueFormat::Soap(_) => soap::read(bytes, &limits, &[])?.request_content(NAMESPACE, op.word()),
            format => format.read(bytes, &limits),
        }
    }

    /// Writes a response.
    pub fn write_answer(self, op: Op, content: &Content) -> Result<Vec<u8>, WireError> {
        match self.format {
            ValueFormat::XmlRpc => xmlrpc::write_response(&Ok(to_value(content))),
            ValueFormat::Soap(version) => {
                soap::write(&Envelope::response(version, NAMESPACE, op.word(), content))
            }
            format => format.write(content),
        }
    }

    /// Writes a failure: a fault if the format has faults, else nothing.
    pub fn write_failure(self, error: &WireError) -> Result<Vec<u8>, WireError> {
        match self.format {
            ValueFormat::XmlRpc => {
                xmlrpc::write_response(&Err(RpcFault { code: CODE_WRONG_PARAMS, text: error.to_string() }))
            }
            ValueFormat::Soap(version) => soap::write(&Envelope::fault(version, SoapFault::of_error(error))),
            _ => Ok(Vec::new()),
        }
    }

    /// Reads a response.
    pub fn read_answer(self, op: Op, bytes: &[u8]) -> Result<Content, SubjectError> {
        let limits = DocumentLimits::default();
        match self.format {
            ValueFormat::XmlRpc => match xmlrpc::read_response(bytes, &limits)? {
                Ok(value) => Ok(of_value(&value)?),
                Err(fault) => Err(SubjectError::Fault(fault.to_string())),
            },
            ValueFormat::Soap(_) => {
                let envelope = soap::read(bytes, &limits, &[])?;
                let content = envelope.response_content(NAMESPACE, op.word())?;
                content.map_err(|fault| SubjectError::Fault(format!("fault: {}", fault.reason)))
            }
            format => Ok(format.read(bytes, &limits)?),
        }
    }
}

impl ValueFormat {
    fn write(self, content: &Content) -> Result<Vec<u8>, WireError> {
        match self {
            Self::Json => json::write_content(content),
            Self::Protobuf => Ok(protobuf::write(content)),
            _ => content.to_xml(),
        }
    }

    fn read(self, bytes: &[u8], limits: &DocumentLimits) -> Result<Content, WireError> {
        match self {
            Self::Json => json::read_content(bytes, limits),
            Self::Protobuf => protobuf::read(bytes, limits),
            Self::XmlSax => content::sax::read(bytes, limits),
            Self::XmlDom => content::dom::read(bytes, limits),
            _ => content::pull::read(bytes, limits),
        }
    }
}

/// Returns the SOAP action of an operation.
pub(crate) fn action(op: Op) -> String {
    format!("{NAMESPACE}#{}", op.word())
}

fn unexpected(what: &str) -> WireError {
    WireError::Unexpected(what.to_owned())
}

/// Converts content to an XML-RPC value: a record of one field, named after the kind.
pub(super) fn to_value(content: &Content) -> Value {
    let list = |values: Vec<Value>| Value::List(values);
    let (name, value) = match content {
        Content::Payload(text) => ("payload", Value::Text(text.clone())),
        Content::Numbers(numbers) => {
            ("numbers", list(numbers.iter().map(|number| Value::Int(*number)).collect()))
        }
        Content::Texts(texts) => {
            ("texts", list(texts.iter().map(|text| Value::Text(text.clone())).collect()))
        }
        Content::Objects(items) => ("objects", list(items.iter().map(item_to_value).collect())),
        Content::Points(points) => ("points", list(points.iter().map(point_to_value).collect())),
    };
    Value::Record(vec![(name.into(), value)])
}

fn item_to_value(item: &Item) -> Value {
    Value::Record(vec![
        ("id".into(), Value::Int(item.id)),
        ("name".into(), Value::Text(item.name.clone())),
        ("price".into(), Value::Double(item.price)),
    ])
}

fn point_to_value(point: &Point) -> Value {
    let fields = content::POINT_FIELD_NAMES.iter().zip(point.fields());
    Value::Record(fields.map(|(name, text)| ((*name).to_owned(), Value::from(text))).collect())
}

/// Converts an XML-RPC value to content.
pub(super) fn of_value(value: &Value) -> Result<Content, WireError> {
    let Value::Record(fields) = value else { return Err(unexpected("a record is wanted")) };
    let [(name, value)] = &fields[..] else { return Err(unexpected("a record of one field is wanted")) };
    match (name.as_str(), value) {
        ("payload", Value::Text(text)) => Ok(Content::Payload(text.clone())),
        ("numbers", Value::List(values)) => each(values, Value::as_int).map(Content::Numbers),
        ("texts", Value::List(values)) => {
            each(values, |value| value.as_text().map(str::to_owned)).map(Content::Texts)
        }
        ("objects", Value::List(values)) => each(values, item_of_value).map(Content::Objects),
        ("points", Value::List(values)) => each(values, point_of_value).map(Content::Points),
        _ => Err(unexpected("no kind of content")),
    }
}

fn each<T>(values: &[Value], read: impl Fn(&Value) -> Option<T>) -> Result<Vec<T>, WireError> {
    let entries: Option<Vec<T>> = values.iter().map(read).collect();
    entries.ok_or_else(|| unexpected("an entry of another kind"))
}

fn item_of_value(value: &Value) -> Option<Item> {
    let price = match value.get("price")? {
        Value::Double(price) => *price,
        // Some languages write a number without a fraction as an integer.
        Value::Int(price) => *price as f64,
        _ => return None,
    };
    Some(Item { id: value.get("id")?.as_int()?, name: value.get("name")?.as_text()?.to_owned(), price })
}

fn point_of_value(value: &Value) -> Option<Point> {
    let mut fields: [String; content::POINT_FIELDS] = std::array::from_fn(|_| String::new());
    for (field, name) in fields.iter_mut().zip(content::POINT_FIELD_NAMES) {
        value.get(name)?.as_text()?.clone_into(field);
    }
    Some(Point::of(fields))
}
