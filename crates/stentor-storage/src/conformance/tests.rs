use std::path::Path;

/// Names the cases that the files of a port define.
fn defined(port: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/conformance").join(port);
    let files = std::fs::read_dir(folder).expect("the folder of cases");
    let texts = files.map(|file| std::fs::read_to_string(file.expect("a file").path()).expect("a text"));
    let names = |text: String| {
        let lines = text.lines().filter_map(|line| line.strip_prefix("pub async fn "));
        lines.filter_map(|rest| Some(rest.split_once('(')?.0.to_owned())).collect::<Vec<_>>()
    };
    texts.flat_map(names).collect()
}

#[test]
fn every_case_is_in_its_suite_once() {
    let suites = include_str!("suites.rs");
    for port in ["store", "queue"] {
        let cases = defined(port);
        assert!(cases.len() > 10, "the cases of the {port} were not found");
        for case in cases {
            let listed = suites.lines().filter(|line| line.trim() == case).count();
            assert_eq!(listed, 1, "{case} is defined and must be listed once in suites.rs");
        }
    }
}
