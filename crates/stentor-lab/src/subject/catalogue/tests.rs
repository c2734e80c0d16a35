use super::*;
use std::path::PathBuf;

/// The folder of this project.
fn shipped() -> PathBuf {
    folder([Path::new(env!("CARGO_MANIFEST_DIR"))]).expect("a folder of subjects")
}

#[test]
fn every_definition_of_ours_can_be_read_and_speaks_a_known_dialect() {
    let entries = read(&shipped()).expect("definitions");
    assert!(entries.len() > 2, "{}", entries.len());
    for pair in entries.windows(2) {
        assert_ne!(pair[0].definition.id, pair[1].definition.id);
    }
    for CatalogueEntry { file, definition } in &entries {
        let name = file.display();
        assert!(definition.is_of_push_service() || definition.dialect().is_ok(), "{name}");
        assert!(
            !definition.ops.is_empty() && !definition.roles.is_empty() && !definition.run.is_empty(),
            "{name}"
        );
        assert_eq!(definition.build.is_empty(), definition.artefact.is_none(), "{name}");
        let known = |need: &String| is_known(need.split([' ', '>']).next().unwrap_or_default());
        assert!(definition.needs.iter().all(known), "{name}: {:?}", definition.needs);
        assert!(definition.directory.as_ref().is_some_and(|directory| directory.is_absolute()), "{name}");
    }
}

fn is_known(name: &str) -> bool {
    ["java", "javac", "mvn", "php", "python", "cc", "expat", "zend"].contains(&name)
        || name.starts_with("php-")
}

/// Makes a folder with these files.
fn made(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a directory");
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        std::fs::write(path, text).expect("written");
    }
    folder
}

fn definition(id: &str, more: &str) -> String {
    format!("id = '{id}'\nops = ['echo']\nroles = ['server']\nrun = ['true', '@heap']\n{more}")
}

#[test]
fn subjects_are_found_by_id_or_by_the_beginning_of_only_one() {
    let folder = made(&[
        ("java/a.toml", &definition("soap/axis2/jdk17", "")),
        ("b.toml", &definition("soap/cxf-2/jdk17", "")),
        ("php/.c.toml", "hidden"),
        ("php/README", "no definition"),
        ("php/plan.toml", "a plan"),
        ("java/deeper/d.toml", "not looked at"),
    ]);
    let entries = read(folder.path()).expect("definitions");
    assert_eq!(entries.len(), 2);
    let id = |begin: &str| find(&entries, begin).map(|entry| entry.definition.id.clone());
    assert_eq!(id("soap/c").as_deref(), Some("soap/cxf-2/jdk17"));
    assert_eq!(id("soap/axis2/jdk17").as_deref(), Some("soap/axis2/jdk17"));
    assert_eq!((id("soap"), id("rest")), (None, None));
    assert_eq!(entries[0].definition.directory, Some(folder.path().join("java")));
}

#[test]
fn a_bad_definition_is_named() {
    let folder = made(&[("x.toml", &definition("corba/x", ""))]);
    let error = read(folder.path()).expect_err("no dialect").to_string();
    assert!(error.contains("x.toml") && error.contains("is no dialect"), "{error}");
}

#[test]
fn building_leaves_an_artefact_or_has_failed() {
    let built = |build: &str| {
        let folder =
            made(&[("x.toml", &definition("soap/x", &format!("artefact = 'out'\nbuild = {build}\n")))]);
        let entries = read(folder.path()).expect("a definition");
        assert!(!entries[0].is_built());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let done = runtime.block_on(entries[0].build()).map_err(|error| error.to_string());
        (done, entries[0].is_built())
    };
    assert_eq!(built("['touch', 'out']"), (Ok(()), true));
    assert!(built("['true']").0.is_err_and(|error| error.ends_with("left nothing behind")));
    let failed = built("['sh', '-c', 'echo why; exit 3']").0.expect_err("failed");
    assert!(failed.contains("exit status: 3\nwhy"), "{failed}");
    assert!(built("['no-such-program-anywhere']").0.is_err_and(|error| error.contains("cannot be started")));
}

#[test]
fn a_heap_is_limited_where_the_cell_says_so() {
    let definition = Definition::parse(&definition("soap/x", "")).expect("readable");
    assert_eq!(definition.words(&Default::default()), ["true"]);
    let factors = [("heap".to_owned(), "16".to_owned())].into();
    assert_eq!(definition.for_cell(&factors).run, ["true", "-Xmx16m", "-XX:+UseSerialGC"]);
    let phone = [("heap", "16"), ("java_strings", "UTF-16"), ("java_code", "interpreted")];
    let phone = phone.map(|(name, level)| (name.to_owned(), level.to_owned())).into();
    assert_eq!(definition.words(&phone)[3..], ["-XX:-CompactStrings", "-Xint"]);
    let java = Definition { run: vec!["java".into(), "@heap".into()], ..definition.clone() };
    let collectors = [&definition, &java, &java.for_cell(&factors)].map(Definition::collector);
    assert_eq!(collectors, [None, Some("default"), Some("serial")]);
}
