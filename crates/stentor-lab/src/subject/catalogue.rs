//! The catalogue of foreign subjects: their definitions, their readiness, and their builds.

use super::needs::{Missing, Probes};
use super::{Definition, SubjectError};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::process::Command;

/// The folder of definitions, relative to the project root.
pub const FOLDER: &str = "lab/subjects";
/// The folder of definitions of rival software, measured beside faces of the server; relative to the project root.
pub const RIVALS: &str = "lab/rivals";
/// The extension of definition files.
const EXTENSION: &str = "toml";
/// The plan of a study, which may be beside definitions.
const PLAN: &str = "plan.toml";
/// Maximum of definitions.
const DEFINITIONS_MAX: usize = 1_000;

/// A foreign subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CatalogueEntry {
    /// Its file.
    pub file: PathBuf,
    /// The definition in the file; its directory is absolute.
    #[serde(flatten)]
    pub definition: Definition,
}

/// Readiness of a subject to run here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SubjectReadiness {
    /// True if it is built, or needs no build.
    pub built: bool,
    /// Software missing to run it.
    pub missing: Vec<Missing>,
    /// Software missing to build it.
    pub missing_to_build: Vec<Missing>,
}

impl SubjectReadiness {
    /// Returns true if it can run now.
    #[must_use]
    pub const fn can_run(&self) -> bool {
        self.built && self.missing.is_empty()
    }
}

/// Finds the folder of definitions below one of these places or one of their ancestors.
#[must_use]
pub fn folder<'a>(places: impl IntoIterator<Item = &'a Path>) -> Option<PathBuf> {
    folder_named(FOLDER, places)
}

/// Finds a folder of the project below one of these places or one of their ancestors.
#[must_use]
pub fn folder_named<'a>(name: &str, places: impl IntoIterator<Item = &'a Path>) -> Option<PathBuf> {
    let above = places.into_iter().flat_map(Path::ancestors);
    above.map(|place| place.join(name)).find(|folder| folder.is_dir())
}

/// Reads all definitions of a folder and its direct subfolders, in the order of their ids. A file `plan.toml` is no definition.
pub fn read(folder: &Path) -> Result<Vec<CatalogueEntry>, SubjectError> {
    let folder = std::path::absolute(folder).map_err(SubjectError::io(folder.display().to_string()))?;
    let mut files = Vec::new();
    for inner in
        std::iter::once(folder.clone()).chain(listed(&folder)?.into_iter().filter(|one| one.is_dir()))
    {
        let is_plan = |file: &Path| file.file_name().is_some_and(|name| name == PLAN);
        let is_definition =
            |file: &PathBuf| file.extension().is_some_and(|end| end == EXTENSION) && !is_plan(file);
        files.extend(listed(&inner)?.into_iter().filter(is_definition));
    }
    let entries = files.into_iter().take(DEFINITIONS_MAX).map(entry);
    let mut entries = entries.collect::<Result<Vec<CatalogueEntry>, SubjectError>>()?;
    entries.sort_by(|one, other| one.definition.id.cmp(&other.definition.id));
    Ok(entries)
}

/// Reads the definition in a file. By default its subject runs in the folder of the file.
pub fn entry(file: PathBuf) -> Result<CatalogueEntry, SubjectError> {
    let path = || file.display().to_string();
    let unreadable = |source| SubjectError::Unreadable { path: path(), source: Box::new(source) };
    let text = std::fs::read_to_string(&file).map_err(SubjectError::io(path()))?;
    let mut definition = Definition::parse(text.trim_start_matches('\u{feff}')).map_err(unreadable)?;
    if !definition.is_of_push_service() {
        definition.dialect().map_err(unreadable)?;
    }
    let beside = std::path::absolute(&file).map_err(SubjectError::io(path()))?;
    let beside = beside.parent().unwrap_or(Path::new("/"));
    definition.directory = Some(definition.directory.map_or(beside.to_owned(), |inner| beside.join(inner)));
    Ok(CatalogueEntry { file, definition })
}

/// Finds the subject with this id, or the only one with this prefix.
#[must_use]
pub fn find<'a>(entries: &'a [CatalogueEntry], id: &str) -> Option<&'a CatalogueEntry> {
    let exact = entries.iter().find(|entry| entry.definition.id == id);
    let mut beginning = entries.iter().filter(|entry| entry.definition.id.starts_with(id));
    exact.or_else(|| beginning.next().filter(|_| beginning.next().is_none()))
}

impl CatalogueEntry {
    /// Determines the missing software.
    pub fn readiness(&self, probes: &mut Probes) -> SubjectReadiness {
        let (to_build, to_run): (Vec<_>, Vec<_>) =
            self.definition.needs.iter().partition(|need| super::needs::is_to_build(need));
        let mut missing =
            |needs: Vec<&String>| needs.into_iter().filter_map(|need| probes.missing(need)).collect();
        SubjectReadiness {
            built: self.is_built(),
            missing: missing(to_run),
            missing_to_build: missing(to_build),
        }
    }

    /// Returns true if the artefact of its build exists, or if it has none.
    #[must_use]
    pub fn is_built(&self) -> bool {
        let directory = self.definition.directory.as_deref().unwrap_or(Path::new("."));
        self.definition.artefact.as_ref().is_none_or(|artefact| directory.join(artefact).exists())
    }

    /// Builds it with its own tools, which log to standard error. Does nothing if it needs no build.
    pub async fn build(&self) -> Result<(), SubjectError> {
        let [program, arguments @ ..] = &self.definition.build[..] else { return Ok(()) };
        let directory = self.definition.directory.clone().unwrap_or_default();
        let failed = |what: String| SubjectError::Build {
            command: self.definition.build.join(" "),
            directory: directory.display().to_string(),
            what,
        };
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(&directory)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        let child = command.spawn().map_err(|error| failed(format!("cannot be started: {error}")))?;
        let output = child.wait_with_output().await.map_err(|error| failed(format!("was lost: {error}")))?;
        if !output.status.success() {
            return Err(failed(format!("ended with {}\n{}", output.status, last_lines(&output.stdout))));
        }
        if self.is_built() { Ok(()) } else { Err(failed("left nothing behind".into())) }
    }
}

/// Lists a folder without hidden files.
fn listed(folder: &Path) -> Result<Vec<PathBuf>, SubjectError> {
    let name = || SubjectError::io(folder.display().to_string());
    let entries = std::fs::read_dir(folder).map_err(name())?;
    let paths: Result<Vec<PathBuf>, std::io::Error> = entries.map(|entry| Ok(entry?.path())).collect();
    let mut paths = paths.map_err(name())?;
    paths.retain(|path| !path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.')));
    paths.sort();
    Ok(paths)
}

/// Returns the last lines of a tool's output.
fn last_lines(said: &[u8]) -> String {
    const LINES_MAX: usize = 20;
    let said = String::from_utf8_lossy(said);
    let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(LINES_MAX)..].join("\n")
}

#[cfg(test)]
mod tests;
