//! Writes the data set of the claims, from the claims of the studies.

use std::path::Path;

use stentor_lab::artifact::{CLAIMS_FILE, claims_data};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(CLAIMS_FILE);
    Ok(std::fs::write(file, serde_json::to_string_pretty(&claims_data()?)? + "\n")?)
}
