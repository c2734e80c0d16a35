//! Configuration: any file and any variables are valid, or every problem is reported.
#![no_main]
use libfuzzer_sys::fuzz_target;
use stentor_node::config::load_with;

fuzz_target!(|input: &str| {
    // First lines of the form NAME=VALUE, as variables; after an empty line the file. Names of other files are left out.
    let (variables, file) = input.split_once("\n\n").unwrap_or(("", input));
    let variables = variables
        .lines()
        .filter_map(|line| line.split_once('='))
        .filter(|(name, _)| !name.ends_with("_FILE"));
    let variables = variables.map(|(name, value)| (format!("STENTOR__{name}"), value.to_owned()));
    let path = std::env::temp_dir().join(format!("stentor-fuzz-{}.toml", std::process::id()));
    std::fs::write(&path, file).unwrap();
    if let Err(error) = load_with(Some(&path), variables) {
        assert!(!error.to_string().is_empty());
    }
    let _ = std::fs::remove_file(&path);
});
