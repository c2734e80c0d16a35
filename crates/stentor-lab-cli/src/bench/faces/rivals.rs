//! Other servers that answer the same request with the same record and do nothing else: subjects of the laboratory, by LSP-1.

use super::measured::MeasuredFace;
use crate::faces::replay::Replay;
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;
use stentor_lab::subject::catalogue::{self, CatalogueEntry};
use stentor_lab::subject::needs::Probes;
use stentor_lab::subject::process::SubjectProcess;
use stentor_lab::subject::protocol::{Prepare, Report, SubjectOrder, SubjectRole};
use stentor_lab::subject::reference::Op;

/// Timeout of a start: a Java machine with a framework starts slowly.
const PATIENCE: Duration = Duration::from_secs(60);
/// Separates marks in a factor with several.
const SEPARATOR: &str = ";";

/// Folder of the rivals.
#[derive(Clone, Debug)]
pub(crate) enum RivalFolder {
    /// Rivals are excluded.
    LeftOut,
    /// There is no folder of rivals here.
    Unknown,
    /// Their definitions are here.
    At(PathBuf),
}

/// A rival of a face.
pub(super) struct Rival {
    /// Dialect, software and runtime.
    pub(super) id: String,
    /// Versions of its software, by name.
    pub(super) versions: BTreeMap<String, String>,
    pub(super) measured: MeasuredFace,
    // Held, because the process runs until it is dropped.
    _process: SubjectProcess,
}

/// Starts the rival of this face. The error is the reason for which there is none.
pub(super) async fn start(
    face: &str,
    folder: &RivalFolder,
    record: &Value,
    texts: &[String],
) -> Result<Rival, String> {
    let entry = match folder {
        _ if !["soap", "xmlrpc", "grpc"].contains(&face) => Err("none is named for this face".to_owned()),
        RivalFolder::LeftOut => Err("left out by --rivals none".to_owned()),
        RivalFolder::Unknown => Err(format!("no folder {} here or above", catalogue::RIVALS)),
        RivalFolder::At(folder) => entry(face, folder),
    }?;
    serve(face, &entry, record, texts).await.map_err(|error| format!("{error:#}"))
}

/// Finds the definition and checks that it can run.
fn entry(face: &str, folder: &Path) -> Result<CatalogueEntry, String> {
    let entries = catalogue::read(folder).map_err(|error| error.to_string())?;
    let dialect = format!("{face}/");
    let entry = entries.into_iter().find(|entry| entry.definition.id.starts_with(&dialect));
    let entry = entry.ok_or_else(|| format!("{} has none", folder.display()))?;
    let readiness = entry.readiness(&mut Probes::default());
    let mut missing = readiness.missing;
    if !readiness.built {
        missing.extend(readiness.missing_to_build);
    }
    if !missing.is_empty() {
        let missing: Vec<String> = missing.iter().map(ToString::to_string).collect();
        return Err(format!("missing: {}", missing.join("; ")));
    }
    if !readiness.built {
        let folder = folder.display();
        return Err(format!("not built: stentor lab subject build --subjects {folder} --all"));
    }
    Ok(entry)
}

async fn serve(
    face: &str,
    entry: &CatalogueEntry,
    record: &Value,
    texts: &[String],
) -> anyhow::Result<Rival> {
    let mut process = SubjectProcess::start(&entry.definition, PATIENCE)?;
    let Report::Hello { versions, .. } = process.ask(&SubjectOrder::Hello).await? else {
        anyhow::bail!("it did not say hello");
    };
    let prepare = Prepare {
        role: SubjectRole::Server,
        op: Op::Echo,
        factors: factors(record),
        bind: Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))),
        target: None,
        seed: 1,
        variant: String::new(),
    };
    let Report::Ready { port, .. } = process.ask(&SubjectOrder::Prepare(prepare)).await? else {
        anyhow::bail!("it did not get ready");
    };
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    // The rival checks no key; the key is sent all the same, so that the requests are alike.
    let replay = Replay::of(face, address, "sk_none", &super::show(record));
    let measured = MeasuredFace::find(replay, process.id(), texts)?;
    Ok(Rival { id: entry.definition.id.clone(), versions, measured, _process: process })
}

/// Returns a record as factors: a text for each field, with all marks in one text.
fn factors(record: &Value) -> BTreeMap<String, String> {
    let text = |value: &Value| match value {
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(SEPARATOR),
        other => other.as_str().unwrap_or_default().to_owned(),
    };
    let fields = record.as_object().into_iter().flatten();
    fields.map(|(name, value)| (name.clone(), text(value))).collect()
}
