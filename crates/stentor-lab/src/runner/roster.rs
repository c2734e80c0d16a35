//! The available subjects: ours, and foreign ones that can run here.

use crate::plan::NotRun;
use crate::subject::catalogue::CatalogueEntry;
use crate::subject::dialect::{DIALECTS, SubjectDialect};
use crate::subject::needs::Probes;
use crate::subject::{Definition, PUSH_SERVICES};

/// Dialects that the server also offers as faces.
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

/// Lists the built-in subjects; `speak` is the command that plays a dialect; the dialect's name is appended to it.
#[must_use]
pub fn ours(speak: &[String]) -> Vec<Definition> {
    let play = |name: &str| speak.iter().cloned().chain([name.to_owned()]).collect();
    DIALECTS.map(|dialect| Definition::built_in(dialect, play(dialect.name()))).to_vec()
}

/// Lists the subjects with the project's own server; `speak` is the command that plays a dialect; the dialect's name is appended to it.
#[must_use]
pub fn served(speak: &[String]) -> Vec<Definition> {
    let play = |name: &str| speak.iter().cloned().chain([name.to_owned()]).collect();
    let dialects = SERVED_DIALECTS.into_iter().filter_map(SubjectDialect::named);
    dialects.map(|dialect| Definition::served(dialect, play(dialect.name()))).collect()
}

/// Lists the push services, with the project's own gateway; `speak` is the command that plays a service; the service's name is appended to
/// it.
#[must_use]
pub fn pushed(speak: &[String]) -> Vec<Definition> {
    let play = |name: &str| speak.iter().cloned().chain([name.to_owned()]).collect();
    PUSH_SERVICES.map(|service| Definition::pushed(service, play(service))).to_vec()
}

/// Separates foreign subjects that can run here from those that cannot, with the reasons.
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
