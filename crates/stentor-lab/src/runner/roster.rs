//! The subjects that there are: ours, and foreign ones that can run here.

use crate::plan::NotRun;
use crate::subject::catalogue::CatalogueEntry;
use crate::subject::dialect::{DIALECTS, SubjectDialect};
use crate::subject::needs::Probes;
use crate::subject::{Definition, PUSH_SERVICES};

/// Dialects whose counterparts the server has as faces.
pub const SERVED_DIALECTS: [&str; 10] = [
    "soap",
    "rest+json",
    "rest+xml",
    "rest+xml-sax",
    "rest+xml-dom",
    "rest+protobuf",
    "xmlrpc",
    "grpc",
    "socket+xml-sax",
    "socket+protobuf",
];

/// Lists our own subjects; `speak` is the command that plays the dialect whose name is added.
#[must_use]
pub fn ours(speak: &[String]) -> Vec<Definition> {
    let play = |name: &str| speak.iter().cloned().chain([name.to_owned()]).collect();
    DIALECTS.map(|dialect| Definition::built_in(dialect, play(dialect.name()))).to_vec()
}

/// Lists the subjects whose server is the real one; `speak` is the command that plays the dialect whose name is added.
#[must_use]
pub fn served(speak: &[String]) -> Vec<Definition> {
    let play = |name: &str| speak.iter().cloned().chain([name.to_owned()]).collect();
    let dialects = SERVED_DIALECTS.into_iter().filter_map(SubjectDialect::named);
    dialects.map(|dialect| Definition::served(dialect, play(dialect.name()))).collect()
}

/// Lists push services, whose gateway is the real one; `speak` is the command that plays the service whose name is added.
#[must_use]
pub fn pushed(speak: &[String]) -> Vec<Definition> {
    let play = |name: &str| speak.iter().cloned().chain([name.to_owned()]).collect();
    PUSH_SERVICES.map(|service| Definition::pushed(service, play(service))).to_vec()
}

/// Sorts foreign subjects by whether they can run here, with the reason for those that cannot.
#[must_use]
pub fn ready(entries: &[CatalogueEntry]) -> (Vec<Definition>, Vec<NotRun>) {
    let (mut definitions, mut not_run, mut probes) = (Vec::new(), Vec::new(), Probes::default());
    for entry in entries {
        let readiness = entry.readiness(&mut probes);
        if readiness.can_run() {
            definitions.push(entry.definition.clone());
            continue;
        }
        let missing: Vec<String> = readiness.missing.iter().map(ToString::to_string).collect();
        let reason = if missing.is_empty() {
            format!("not built: stentor lab subject build {}", entry.definition.id)
        } else {
            format!("missing: {}", missing.join("; "))
        };
        not_run.push(NotRun { what: entry.definition.id.clone(), reason });
    }
    (definitions, not_run)
}
