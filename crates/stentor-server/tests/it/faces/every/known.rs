//! Every operation of the table is known to every face that names operations itself, with any record.

use std::fmt::Write as _;

use reqwest::Body;
use serde_json::json;
use stentor_server::contract::table::OPERATIONS;
use stentor_server::face::grpc;

use super::{Through, received, start};
use crate::faces::socket;
use crate::harness::Server;

const NAMING_FACES: [Through; 4] = [Through::Soap, Through::Xmlrpc, Through::Grpc, Through::Socket];
/// The gRPC status of an unknown method.
const UNIMPLEMENTED: &str = "12";

/// An operation with its name in each face.
struct Named<'a> {
    operation: &'a str,
    /// Its element in SOAP.
    element: &'a str,
    /// Its path in gRPC.
    method: String,
}

/// The record of the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Record {
    Empty,
    Hostile,
}

#[tokio::test]
async fn no_face_says_that_an_operation_of_the_table_is_not_there() {
    let server = super::server().await;
    let tenant = server.tenant().await;
    let methods = methods();
    for through in NAMING_FACES {
        for facts in OPERATIONS {
            let method = methods.iter().find(|path| path.ends_with(&format!("/{}", facts.type_name)));
            let method = method.unwrap_or_else(|| panic!("no method for {}", facts.name)).clone();
            let named = Named { operation: facts.name, element: facts.type_name, method };
            for record in [Record::Empty, Record::Hostile] {
                let reply_text = told(through, &server, &tenant.key, &named, record).await;
                assert!(
                    !is_nowhere(through, &reply_text),
                    "{through:?} {} {record:?}: {reply_text}",
                    facts.name
                );
                let is_refused = record == Record::Empty || is_refusal(through, &reply_text);
                assert!(is_refused, "{through:?} {} takes what is no record: {reply_text}", facts.name);
            }
        }
        // A check of the check: each face answers an unknown operation in the expected words.
        let (operation, element) = ("devices.fly", "FlyDevice");
        let nowhere = Named { operation, element, method: format!("/stentor.v1.Devices/{element}") };
        let reply_text = told(through, &server, &tenant.key, &nowhere, Record::Empty).await;
        assert!(is_nowhere(through, &reply_text), "{through:?}: {reply_text}");
    }
}

/// Lists the gRPC paths that a client finds in the description.
fn methods() -> Vec<String> {
    let (mut service, mut paths) = ("", Vec::new());
    let proto = grpc::proto();
    for line in proto.lines() {
        let mut words = line.split([' ', '(']).filter(|word| !word.is_empty());
        match (words.next(), words.next()) {
            (Some("service"), Some(name)) => service = name,
            (Some("rpc"), Some(name)) => paths.push(format!("/stentor.v1.{service}/{name}")),
            _ => {}
        }
    }
    paths
}

/// Returns the face's complete answer to the call.
async fn told(through: Through, server: &Server, key: &str, named: &Named<'_>, record: Record) -> String {
    if through == Through::Socket {
        let mut client = socket::client(server, key).await;
        let record = if record == Record::Empty { json!({}) } else { json!({"\u{1}": [[{"a": null}]]}) };
        client.send(named.operation, record).await;
        return client.reply().await.to_string();
    }
    let request = request(through, named, record);
    let body = Body::from(request.body.clone());
    let reply = received(start(through, server, key, &request, body).send().await.expect("an answer")).await;
    let mut reply_text = String::from_utf8_lossy(&reply.body).into_owned();
    if let Some(status) = reply.headers.get("grpc-status") {
        write!(reply_text, " grpc-status: {}", status.to_str().expect("text")).expect("written");
    }
    reply_text
}

fn request(through: Through, named: &Named<'_>, record: Record) -> super::HttpRequest {
    let is_empty = record == Record::Empty;
    let (path, content_type, body) = match through {
        Through::Soap => {
            let inside = if is_empty { "" } else { "<a:b xmlns:a='urn:other' c='d'><e/></a:b>" };
            let element = format!("<{0} xmlns='urn:stentor:v1'>{inside}</{0}>", named.element);
            let namespace = "http://schemas.xmlsoap.org/soap/envelope/";
            let body = format!("<s:Envelope xmlns:s='{namespace}'><s:Body>{element}</s:Body></s:Envelope>");
            ("/soap".to_owned(), "text/xml", body.into_bytes())
        }
        Through::Xmlrpc => {
            let value = if is_empty { "<struct/>" } else { "<array><data><int>1</int></data></array>" };
            let params = format!("<params><param><value>{value}</value></param></params>");
            let call =
                format!("<methodCall><methodName>{}</methodName>{params}</methodCall>", named.operation);
            ("/rpc".to_owned(), "text/xml", call.into_bytes())
        }
        Through::Grpc => {
            // An unterminated group at the start of a message in this format.
            let message: &[u8] = if is_empty { &[] } else { &[0x0b, 0x0b, 0xff] };
            let length = u32::try_from(message.len()).expect("short").to_be_bytes();
            (named.method.clone(), "application/grpc", [&[0][..], &length, message].concat())
        }
        Through::Rest | Through::Socket => unreachable!("it does not name operations in a document of HTTP"),
    };
    super::HttpRequest { method: reqwest::Method::POST, path, content_type, repeat: None, body }
}

/// Returns true if the answer says that there is no such operation.
fn is_nowhere(through: Through, reply_text: &str) -> bool {
    match through {
        Through::Grpc => reply_text.ends_with(&format!("grpc-status: {UNIMPLEMENTED}")),
        Through::Xmlrpc => reply_text.contains("there is no method"),
        _ => reply_text.contains("there is no operation"),
    }
}

fn is_refusal(through: Through, reply_text: &str) -> bool {
    match through {
        Through::Soap => reply_text.contains(":Fault>"),
        Through::Xmlrpc => reply_text.contains("<fault>"),
        Through::Grpc => !reply_text.ends_with("grpc-status: 0"),
        Through::Rest | Through::Socket => reply_text.contains("\"error\""),
    }
}
