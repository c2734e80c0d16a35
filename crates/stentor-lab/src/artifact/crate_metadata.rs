//! The description of an artifact as an RO-Crate.

use super::Artifact;
use serde_json::{Value, json};

/// The version of the RO-Crate specification.
pub const CONFORMS_TO: &str = "https://w3id.org/ro/crate/1.1";
const CONTEXT: &str = "https://w3id.org/ro/crate/1.1/context";
const LICENSE: &str = "https://www.apache.org/licenses/LICENSE-2.0";
/// Letters of the date in a timestamp.
const DATE_LETTERS: usize = 10;

/// A file of an artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CrateFile {
    /// Its path in the folder, with `/`.
    pub path: String,
    /// Its size, in bytes.
    pub bytes: u64,
    /// Its SHA-256, in hexadecimal.
    pub sha256: String,
}

impl CrateFile {
    /// Returns the media type, by the name.
    fn media_type(&self) -> &'static str {
        let end = self.path.rsplit('.').next().unwrap_or_default();
        match end {
            "json" => "application/json",
            "jsonl" | "ndjson" => "application/x-ndjson",
            "zst" => "application/zstd",
            "gz" => "application/gzip",
            "pcap" => "application/vnd.tcpdump.pcap",
            "csv" => "text/csv",
            "md" => "text/markdown",
            "html" => "text/html",
            "svg" => "image/svg+xml",
            "toml" => "application/toml",
            "py" | "php" | "java" | "xml" | "cff" | "txt" => "text/plain",
            _ => "application/octet-stream",
        }
    }

    fn entity(&self) -> Value {
        json!({
            "@id": self.path,
            "@type": "File",
            "name": self.path,
            "contentSize": self.bytes.to_string(),
            "encodingFormat": self.media_type(),
            "sha256": self.sha256,
        })
    }
}

/// Writes `ro-crate-metadata.json` for the files of an artifact.
#[must_use]
pub fn crate_metadata(artifact: &Artifact, files: &[CrateFile]) -> Value {
    let part = |file: &CrateFile| json!({"@id": file.path});
    let date: String = artifact.ended.chars().take(DATE_LETTERS).collect();
    let root = json!({
        "@id": "./",
        "@type": "Dataset",
        "name": format!("Artifact of {}, run again", artifact.study),
        "description": format!(
            "Records, captures, program and instructions of a run of the study {}. README.md has its claims and experiments.",
            artifact.study
        ),
        "datePublished": date,
        "license": {"@id": LICENSE},
        "hasPart": files.iter().map(part).collect::<Vec<_>>(),
        "mentions": {"@id": "#run"},
    });
    let records: Vec<Value> = files.iter().filter(|file| file.path.starts_with("run/")).map(part).collect();
    let entities = [
        json!({
            "@id": "ro-crate-metadata.json",
            "@type": "CreativeWork",
            "conformsTo": {"@id": CONFORMS_TO},
            "about": {"@id": "./"},
        }),
        root,
        json!({
            "@id": LICENSE,
            "@type": "CreativeWork",
            "name": "Apache License 2.0",
            "url": LICENSE,
        }),
        json!({
            "@id": "#stentor-lab",
            "@type": "SoftwareApplication",
            "name": "stentor-lab",
            "softwareVersion": format!("{} ({})", artifact.version, artifact.commit),
            "url": "bin/stentor-lab",
        }),
        json!({
            "@id": "#run",
            "@type": "CreateAction",
            "name": format!("Run of {}", artifact.study),
            "instrument": {"@id": "#stentor-lab"},
            "endTime": artifact.ended,
            "result": records,
        }),
    ];
    let graph: Vec<Value> = entities.into_iter().chain(files.iter().map(CrateFile::entity)).collect();
    json!({"@context": CONTEXT, "@graph": graph})
}
