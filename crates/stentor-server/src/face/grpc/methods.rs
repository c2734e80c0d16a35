//! Which services there are and which methods they have: a service a noun, a method an operation.

use crate::contract::description::{OperationShape, description};

/// The package of all that this face describes.
pub(super) const PACKAGE: &str = "stentor.v1";
/// The file that describes it.
pub(super) const FILE: &str = "stentor.proto";
/// Services that are not called as their noun, because a record has that name.
const RENAMED: &[(&str, &str)] = &[("status", "ServerStatus")];

/// A service with its methods, in the order of the table.
pub(super) struct Service {
    pub(super) name: String,
    pub(super) operations: Vec<&'static OperationShape>,
}

/// Lists the services.
pub(super) fn services() -> Vec<Service> {
    let mut services: Vec<Service> = Vec::new();
    for one in &description().operations {
        let name = service_name(one.facts.noun_and_verb().0);
        match services.iter_mut().find(|service| service.name == name) {
            Some(service) => service.operations.push(one),
            None => services.push(Service { name, operations: vec![one] }),
        }
    }
    services
}

/// Finds the operation of a path such as `/stentor.v1.Messages/SendMessage`.
pub(super) fn operation(path: &str) -> Option<&'static OperationShape> {
    let (service, method) = path.strip_prefix('/')?.split_once('/')?;
    let service = service.strip_prefix(PACKAGE)?.strip_prefix('.')?;
    let found = description().operations.iter().find(|one| one.facts.type_name == method)?;
    (service_name(found.facts.noun_and_verb().0) == service).then_some(found)
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
            for one in &service.operations {
                let path = format!("/{PACKAGE}.{}/{}", service.name, one.facts.type_name);
                assert_eq!(operation(&path).map(|found| found.facts.name), Some(one.facts.name));
            }
        }
        let methods: usize = services.iter().map(|service| service.operations.len()).sum();
        assert_eq!(methods, description().operations.len());
        assert!(operation("/stentor.v1.Devices/SendMessage").is_none());
        assert!(operation("/stentor.v1.Messages/").is_none());
    }
}
