//! Writes the figures cited by advice without own records: those of the newest run of each study in `docs/studies`, whose records
//! `cargo xtask records` fetches.

use std::path::Path;

use stentor_lab::advise::{FOLDERS, StudyEvidence, write};
use stentor_lab::plan::PLANNED;
use stentor_lab::record::{file_of, read_directory};
use stentor_lab::results::Results;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all = Vec::new();
    for records in PLANNED.iter().flat_map(|study| FOLDERS.map(|folder| format!("{folder}/{study}"))) {
        let directory = home.join("../..").join(&records);
        if file_of(&directory).is_some() {
            all.push(StudyEvidence::of(&Results::of(read_directory(&directory)?)?, &records)?);
        }
    }
    std::fs::write(home.join("src/advise/committed.jsonl"), write(&StudyEvidence::newest(all))?)?;
    Ok(())
}
