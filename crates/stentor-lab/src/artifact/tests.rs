use super::*;
use crate::claims::STUDIES;
use crate::results::tests::study;
use crate::results::{Remarks, Results};
use serde_json::Value;
use std::path::Path;

fn artifact() -> Artifact {
    let account =
        Account::of(Results::of(study(6, 3)).expect("one study"), Remarks::default()).expect("judged");
    let run = ArtifactRun {
        command: "bin/stentor-lab run cai-2009 --quick --subjects subjects --out again".to_owned(),
        seconds: 301.0,
        cells_captured: 1,
        packages: BTreeSet::from(["php8.2-cli".to_owned()]),
        subjects: BTreeSet::from(["soap/ext-soap/php8.2".to_owned()]),
    };
    Artifact::of(&account, run).expect("described")
}

#[test]
fn every_claim_of_every_study_is_in_the_data_set_once() {
    let data = claims_data().expect("judged");
    let claims = data["hasPart"].as_array().expect("claims");
    let ids: BTreeSet<&str> = claims.iter().map(|one| one["identifier"].as_str().expect("an id")).collect();
    let all: usize = STUDIES
        .iter()
        .map(|study| {
            Dossier::open(study).expect("readable").expect("there").judge(None).expect("judged").len()
        })
        .sum();
    assert_eq!((ids.len(), claims.len()), (all, all), "ids are stable, and so unique");
    let papers: BTreeSet<&str> =
        claims.iter().map(|one| one["appearance"]["@id"].as_str().expect("a paper")).collect();
    assert_eq!(papers.len(), STUDIES.len());
    assert!(claims.iter().all(|one| one["statement"]["id"] == one["identifier"] && one["@type"] == "Claim"));
}

#[test]
fn the_published_data_set_is_that_of_the_claims() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(CLAIMS_FILE);
    let published: Value =
        serde_json::from_str(&std::fs::read_to_string(file).expect("readable")).expect("JSON");
    assert!(
        published == claims_data().expect("judged"),
        "claims have changed: cargo run -p stentor-lab --example claims-data"
    );
}

#[test]
fn claims_and_experiments_are_numbered_and_each_claim_names_an_experiment_that_exists() {
    let artifact = artifact();
    let numbers: Vec<&str> = artifact.claims.iter().take(2).map(|one| one.number.as_str()).collect();
    assert_eq!((numbers, artifact.claims[0].id.as_str()), (vec!["C1", "C2"], "C004-1"));
    assert_eq!(artifact.experiments[0].machine_minutes, 6);
    let experiments: BTreeSet<&str> = artifact.experiments.iter().map(|one| one.number.as_str()).collect();
    assert!(
        artifact.claims.iter().flat_map(|one| &one.experiments).all(|one| experiments.contains(one.as_str()))
    );
    assert!(artifact.claims.iter().any(|one| one.expected.is_some()), "the run bears on some");
}

#[test]
fn missing_captures_are_said() {
    let artifact = artifact();
    assert!(artifact.captures.why_missing.contains("cells have no capture"), "{:?}", artifact.captures);
    assert!(appendix(&artifact).contains(&artifact.captures.why_missing));
    assert_eq!(captures(3, 3).why_missing, "");
}

#[test]
fn the_terms_are_those_of_the_acm() {
    let text = appendix(&artifact());
    for row in [
        "| repeatability | same | same |",
        "| reproducibility | different | same |",
        "| replicability | different | different |",
    ] {
        assert!(text.contains(row), "{row}");
    }
    assert!(text.contains("A replication of *Performance"), "{text}");
}

#[test]
fn the_crate_lists_each_file_once_and_names_its_root_and_its_version() {
    let file = |path: &str| CrateFile { path: path.to_owned(), bytes: 3, sha256: "0".repeat(64) };
    let metadata = crate_metadata(&artifact(), &[file("README.md"), file("run/records.jsonl")]);
    let graph = metadata["@graph"].as_array().expect("entities");
    let ids: BTreeSet<&str> = graph.iter().map(|one| one["@id"].as_str().expect("an id")).collect();
    assert_eq!(ids.len(), graph.len(), "no entity is there twice");
    let of = |id: &str| graph.iter().find(|one| one["@id"] == id).unwrap_or_else(|| panic!("{id}"));
    assert_eq!(of("ro-crate-metadata.json")["conformsTo"]["@id"], CONFORMS_TO);
    for part in of("./")["hasPart"].as_array().expect("files") {
        assert_eq!(of(part["@id"].as_str().expect("an id"))["@type"], "File");
    }
    assert_eq!(of("#run")["result"].as_array().expect("records").len(), 1);
}

#[test]
fn the_one_command_checks_installs_builds_runs_and_judges_in_this_order() {
    let script = reproduce(&artifact());
    let steps = [
        "sha256sum --check",
        "apt-get install",
        "php8.2-cli",
        "subject build",
        "run cai-2009",
        "report again",
        "claims cai-2009",
    ];
    let places: Vec<usize> =
        steps.iter().map(|step| script.find(step).unwrap_or_else(|| panic!("{step}: {script}"))).collect();
    assert!(places.is_sorted(), "{script}");
}

#[test]
fn the_files_for_citing_name_this_version_and_the_paper_of_every_study() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |name: &str| std::fs::read_to_string(top.join(name)).expect(name);
    let (citation, version) = (read("CITATION.cff"), env!("CARGO_PKG_VERSION"));
    assert!(citation.lines().any(|line| line == format!("version: {version}")), "{version}");
    for study in STUDIES {
        let paper = Dossier::open(study).expect("readable").expect("there").paper().clone();
        assert!(citation.contains(&format!("title: \"{}\"", paper.title)), "{study}");
        for author in paper.authors.split(", ") {
            let last = author.rsplit(' ').next().expect("a name");
            assert!(citation.contains(&format!("family-names: {last}")), "{study}: {author}");
        }
    }
    let codemeta: Value = serde_json::from_str(&read("codemeta.json")).expect("JSON");
    assert_eq!(
        (&codemeta["version"], &codemeta["@type"]),
        (&Value::from(version), &Value::from("SoftwareSourceCode"))
    );
}
