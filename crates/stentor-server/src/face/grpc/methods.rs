//! The gRPC services and their methods: one service per noun, one method per operation.

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::contract::description::{OperationShape, description};
use crate::contract::shape::RecordShape;
use crate::contract::streams::{StreamFlow, StreamShape};

/// Protobuf package of this face.
pub(super) const PACKAGE: &str = "stentor.v1";
/// File name of its description.
pub(super) const FILE: &str = "stentor.proto";
/// Services with a name other than their noun, which a record already has.
const RENAMED: &[(&str, &str)] = &[("status", "ServerStatus")];

/// A service with its methods, in the order of the table.
pub(super) struct Service {
    pub(super) name: String,
    pub(super) methods: Vec<Method>,
}

/// A method and the data for its descriptions.
pub(super) struct Method {
    /// Name of the operation or of the stream.
    pub(super) operation: &'static str,
    pub(super) name: &'static str,
    pub(super) about: String,
    pub(super) request: &'static RecordShape,
    pub(super) reply: &'static RecordShape,
    /// The streamed side, if any.
    pub(super) flow: Option<StreamFlow>,
}

/// Lists the services.
pub(super) fn services() -> Vec<Service> {
    let mut services: Vec<Service> = Vec::new();
    let streams = description().streams.iter().map(in_pieces);
    for one in description().operations.iter().map(whole).chain(streams) {
        let name = service_name(one.operation.split('.').next().unwrap_or_default());
        match services.iter_mut().find(|service| service.name == name) {
            Some(service) => service.methods.push(one),
            None => services.push(Service { name, methods: vec![one] }),
        }
    }
    services
}

fn whole(one: &'static OperationShape) -> Method {
    let (operation, name, about) = (one.facts.name, one.facts.type_name, one.facts.sentences());
    Method { operation, name, about, request: &one.request, reply: &one.reply, flow: None }
}

fn in_pieces(one: &'static StreamShape) -> Method {
    let (operation, name, about) = (one.facts.name, one.facts.type_name, one.facts.about.to_owned());
    let flow = Some(one.facts.flow);
    Method { operation, name, about, request: &one.request, reply: &one.reply, flow }
}

/// Returns the path of a method.
pub(super) fn path_of(operation: &str, method: &str) -> String {
    let noun = operation.split('.').next().unwrap_or_default();
    format!("/{PACKAGE}.{}/{method}", service_name(noun))
}

/// Returns the operation of a path such as `/stentor.v1.Messages/SendMessage`.
pub(super) fn operation(path: &str) -> Option<&'static OperationShape> {
    static BY_PATH: OnceLock<HashMap<String, &'static OperationShape>> = OnceLock::new();
    let path_of = |one: &OperationShape| path_of(one.facts.name, one.facts.type_name);
    let by_path = || description().operations.iter().map(|one| (path_of(one), one)).collect();
    BY_PATH.get_or_init(by_path).get(path).copied()
}

fn service_name(noun: &str) -> String {
    if let Some((_, name)) = RENAMED.iter().find(|(renamed, _)| *renamed == noun) {
        return (*name).to_owned();
    }
    let mut letters = noun.chars();
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_is_a_method_and_no_service_is_called_as_a_record() {
        let services = services();
        for service in &services {
            assert!(description().record(&service.name).is_none(), "{} is a record: rename it", service.name);
            for one in &service.methods {
                let path = format!("/{PACKAGE}.{}/{}", service.name, one.name);
                assert_eq!(path, path_of(one.operation, one.name));
                let found = operation(&path).map(|found| found.facts.name);
                assert_eq!(found, one.flow.is_none().then_some(one.operation));
            }
        }
        let methods: usize = services.iter().map(|service| service.methods.len()).sum();
        assert_eq!(methods, description().operations.len() + description().streams.len());
        assert!(operation("/stentor.v1.Devices/SendMessage").is_none());
        assert!(operation("/stentor.v1.Messages/").is_none());
    }
}
