//! Writes the figures cited by advice without own records: those of the run of each study in `docs/studies`, whose records
//! `cargo xtask records` fetches.

use std::path::Path;

use stentor_lab::advise::{FOLDER, StudyEvidence, write};
use stentor_lab::plan::PLANNED;
use stentor_lab::record::read_directory;
use stentor_lab::results::Results;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all = Vec::new();
    for records in PLANNED.map(|study| format!("{FOLDER}/{study}")) {
        let forks = read_directory(&home.join("../..").join(&records))?;
        all.push(StudyEvidence::of(&Results::of(forks)?, &records)?);
    }
    std::fs::write(home.join("src/advise/committed.jsonl"), write(&all)?)?;
    Ok(())
}
