use super::*;

const PATH: &str = "docs/studies/one/records.jsonl.zst";

fn done(folder: &Path, arguments: &[&str]) -> String {
    let who = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
    let output = git(folder, &[&who[..], arguments].concat()).expect("git");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Makes a repository that had records and has a page now, and a clone without history.
fn repository_and_clone(folder: &Path) -> (KeptFile, std::path::PathBuf) {
    let (origin, copy) = (folder.join("origin"), folder.join("copy"));
    std::fs::create_dir(&origin).expect("a folder");
    done(&origin, &["init", "--quiet", "--initial-branch", "main"]);
    std::fs::create_dir_all(origin.join(PATH).parent().expect("a folder")).expect("made");
    std::fs::write(origin.join(PATH), "records").expect("written");
    done(&origin, &["add", PATH]);
    done(&origin, &["commit", "--quiet", "--message", "records"]);
    let id = done(&origin, &["rev-parse", &format!("HEAD:{PATH}")]);
    done(&origin, &["rm", "--quiet", PATH]);
    std::fs::write(origin.join("page"), "text").expect("written");
    done(&origin, &["add", "page"]);
    done(&origin, &["commit", "--quiet", "--message", "page"]);
    let address = format!("file://{}", origin.display());
    done(folder, &["clone", "--quiet", "--depth", "1", &address, copy.to_str().expect("text")]);
    (KeptFile { id, path: PATH.to_owned() }, copy)
}

#[test]
fn the_list_is_an_id_and_a_path_on_each_line() {
    let found = files("0a docs/a.zst\n0b docs/b.zst\n").expect("a list");
    assert_eq!(found[1], KeptFile { id: "0b".to_owned(), path: "docs/b.zst".to_owned() });
    for wrong in ["0a", "0a ../a"] {
        assert!(files(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_clone_without_history_gets_the_records_once_and_a_changed_file_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, copy) = repository_and_clone(folder.path());
    let files = [file];
    assert!(!copy.join(PATH).exists());
    assert_eq!(bring(&copy, &files).expect("brought"), 1);
    assert_eq!(std::fs::read_to_string(copy.join(PATH)).expect("there"), "records");
    assert_eq!(bring(&copy, &files).expect("there"), 0);
    std::fs::write(copy.join(PATH), "others").expect("written");
    assert_eq!(bring(&copy, &files).expect("brought"), 1);
    assert_eq!(std::fs::read_to_string(copy.join(PATH)).expect("there"), "records");
}

#[test]
fn a_content_that_the_history_lacks_is_an_error_with_the_name_of_the_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, copy) = repository_and_clone(folder.path());
    let unknown = KeptFile { id: "0".repeat(40), ..file };
    let error = bring(&copy, &[unknown]).expect_err("unknown").to_string();
    assert!(error.contains(PATH) && error.contains("history"), "{error}");
}
