//! Writes the figures cited by advice without own records, from the records in `docs/studies`, which `cargo xtask records` fetches.

use std::path::Path;

use stentor_lab::advise::{StudyEvidence, committed_run, write};
use stentor_lab::plan::PLANNED;
use stentor_lab::record::read_directory;
use stentor_lab::results::Results;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all = Vec::new();
    for study in PLANNED {
        let records = format!("docs/studies/{}", committed_run(study));
        let results = Results::of(read_directory(&home.join("../..").join(&records))?)?;
        all.push(StudyEvidence::of(&results, &records)?);
    }
    std::fs::write(home.join("src/advise/committed.jsonl"), write(&all)?)?;
    Ok(())
}
