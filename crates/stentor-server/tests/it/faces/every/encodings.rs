//! SOAP, XML-RPC and gRPC: records as documents and messages.

use reqwest::Method;
use serde_json::Value as Json;
use stentor_server::contract::description::{OperationShape, description};
use stentor_server::face::record::protobuf::Schema;
use stentor_server::face::record::xml::{NAMESPACE, read_record, write_record};
use stentor_wire::protobuf::fields::{read_delimited, read_key, read_varint};
use stentor_wire::soap::{self, Envelope, SoapBody, Version};
use stentor_wire::{DocumentLimits, Value, xmlrpc};

use super::{HttpReply, HttpRequest, Refused};

fn posted(path: String, content_type: &'static str, body: Vec<u8>) -> HttpRequest {
    HttpRequest { method: Method::POST, path, content_type, repeat: None, body }
}

pub(super) fn soap_request(one: &OperationShape, record: &Json) -> HttpRequest {
    let record = record.as_object().expect("a record");
    let mut element = write_record(one.facts.type_name, record, &one.request, &description().shapes);
    element.namespace = Some(NAMESPACE.to_owned());
    let body = soap::write(&Envelope::around(Version::V12, vec![element])).expect("an envelope");
    posted("/soap".into(), "application/soap+xml", body)
}

pub(super) fn read_soap(one: &OperationShape, reply: &HttpReply) -> Result<Json, Refused> {
    let envelope = soap::read(&reply.body, &DocumentLimits::default(), &[]).expect("an envelope");
    match envelope.body {
        SoapBody::Elements(elements) => {
            let Some(inside) = elements[0].element("return") else { return Ok(Json::Null) };
            Ok(read_record(inside, &one.reply, &description().shapes).expect("a reply").into())
        }
        SoapBody::Fault(fault) => {
            let text = |name: &str| fault.detail[0].element(name).map(|one| one.text());
            Err((text("code").expect("a code"), text("field")))
        }
    }
}

pub(super) fn xmlrpc_request(operation: &str, record: &Json) -> HttpRequest {
    let call = xmlrpc::Call { method: operation.into(), params: vec![value(record)] };
    posted("/rpc".into(), "text/xml", xmlrpc::write_call(&call).expect("a document"))
}

pub(super) fn read_xmlrpc(reply: &HttpReply) -> Result<Json, Refused> {
    let outcome = xmlrpc::read_response(&reply.body, &DocumentLimits::default()).expect("a response");
    outcome.map(|value| json(&value)).map_err(|fault| {
        let named = fault.text.split(':').next().unwrap_or_default();
        let (code, field) =
            named.split_once(" at ").map_or((named, None), |(code, field)| (code, Some(field)));
        (code.to_owned(), field.map(str::to_owned))
    })
}

fn value(json: &Json) -> Value {
    match json {
        Json::Null => Value::Nil,
        Json::Bool(flag) => Value::Bool(*flag),
        Json::Number(number) => Value::Int(number.as_i64().expect("a whole number")),
        Json::String(text) => Value::Text(text.clone()),
        Json::Array(values) => Value::List(values.iter().map(value).collect()),
        Json::Object(fields) => {
            Value::Record(fields.iter().map(|(name, json)| (name.clone(), value(json))).collect())
        }
    }
}

fn json(value: &Value) -> Json {
    match value {
        Value::Nil => Json::Null,
        Value::Bool(flag) => (*flag).into(),
        Value::Int(number) => (*number).into(),
        Value::Double(number) => (*number).into(),
        Value::Text(text) | Value::DateTime(text) => text.as_str().into(),
        Value::Bytes(bytes) => panic!("no operation replies bytes: {bytes:?}"),
        Value::List(values) => values.iter().map(json).collect(),
        Value::Record(fields) => {
            Json::Object(fields.iter().map(|(name, value)| (name.clone(), json(value))).collect())
        }
    }
}

pub(super) fn grpc_request(one: &OperationShape, record: &Json) -> HttpRequest {
    let record = record.as_object().expect("a record");
    let message = Schema::get().write(&one.request.name, record).expect("what Protocol Buffers can say");
    let length = u32::try_from(message.len()).expect("short").to_be_bytes();
    let noun = one.facts.name.split('.').next().unwrap_or_default();
    let service = format!("{}{}", noun[..1].to_uppercase(), &noun[1..]);
    let path = format!("/stentor.v1.{service}/{}", one.facts.type_name);
    posted(path, "application/grpc", [&[0][..], &length, &message].concat())
}

pub(super) fn read_grpc(one: &OperationShape, reply: &HttpReply) -> Result<Json, Refused> {
    let text = |name: &str| reply.headers.get(name).and_then(|value| value.to_str().ok());
    if text("grpc-status") != Some("0") {
        let details = text("grpc-status-details-bin").expect("details");
        return Err(refused(&decoded(details)));
    }
    let read = Schema::get().read(&one.reply.name, &reply.body[5..], &DocumentLimits::default());
    Ok(read.expect("a record").into())
}

fn decoded(details: &str) -> Vec<u8> {
    use base64::Engine as _;
    base64::prelude::BASE64_STANDARD_NO_PAD.decode(details).expect("base64")
}

/// Returns the reason of `google.rpc.ErrorInfo` and the field of `google.rpc.BadRequest` in a `google.rpc.Status`.
fn refused(status: &[u8]) -> Refused {
    let texts = |message: &[u8], number: u32| -> Vec<Vec<u8>> {
        fields(message).into_iter().filter(|(found, _)| *found == number).map(|(_, bytes)| bytes).collect()
    };
    let detail = |kind: &str| {
        let all = texts(status, 3).into_iter();
        let mut of_kind =
            all.filter(|any| texts(any, 1)[0] == format!("type.googleapis.com/google.rpc.{kind}").as_bytes());
        of_kind.next().map(|any| texts(&any, 2).remove(0))
    };
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
    let reason = text(&texts(&detail("ErrorInfo").expect("an ErrorInfo"), 1)[0]);
    let field = detail("BadRequest").map(|request| text(&texts(&texts(&request, 1)[0], 1)[0]));
    (reason, field)
}

/// Lists the fields of a message that have a length in front.
fn fields(mut message: &[u8]) -> Vec<(u32, Vec<u8>)> {
    use stentor_wire::protobuf::fields::WireValue;
    let mut found = Vec::new();
    while !message.is_empty() {
        let (number, kind) = read_key(&mut message).expect("a key");
        if kind == WireValue::Delimited {
            found.push((number, read_delimited(&mut message).expect("bytes").to_vec()));
        } else {
            read_varint(&mut message).expect("a number");
        }
    }
    found
}
