use super::*;

fn mode(path: &Path) -> u32 {
    std::fs::symlink_metadata(path).expect("there").permissions().mode() & 0o7777
}

fn widen(path: &Path, mode: u32) {
    std::fs::set_permissions(path, Permissions::from_mode(mode)).expect("widened");
}

#[test]
fn a_new_directory_is_its_owners_alone_and_those_above_are_as_usual() {
    let home = tempfile::tempdir().expect("a folder");
    let folder = home.path().join("above/data");
    make_folder(&folder).expect("made");
    make_folder(&folder).expect("there already");
    assert_eq!(mode(&folder), 0o700);
    assert_ne!(mode(&home.path().join("above")) & 0o055, 0, "only the data is private");
}

#[test]
fn what_others_could_read_is_narrowed_and_what_is_not_ours_stays() {
    let home = tempfile::tempdir().expect("a folder");
    let (ours, foreign) = (home.path().join("stentor.db-wal"), home.path().join("notes.txt"));
    let elsewhere = tempfile::tempdir().expect("a folder");
    let aim = elsewhere.path().join("aim");
    for path in [&ours, &foreign, &aim] {
        std::fs::write(path, "x").expect("written");
        widen(path, 0o664);
    }
    std::os::unix::fs::symlink(&aim, home.path().join("root.key")).expect("linked");
    widen(home.path(), 0o755);
    tighten(home.path());
    assert_eq!((mode(home.path()), mode(&ours)), (0o700, 0o600));
    assert_eq!((mode(&foreign), mode(&aim)), (0o664, 0o664), "neither a stranger's file nor a link's aim");
}

#[test]
fn a_directory_behind_a_link_is_narrowed_too() {
    let home = tempfile::tempdir().expect("a folder");
    let (folder, link) = (home.path().join("data"), home.path().join("link"));
    std::fs::create_dir(&folder).expect("made");
    widen(&folder, 0o755);
    std::os::unix::fs::symlink(&folder, &link).expect("linked");
    tighten(&link);
    assert_eq!(mode(&folder), 0o700);
}

#[test]
fn a_directory_that_many_share_is_not_taken_from_them() {
    let home = tempfile::tempdir().expect("a folder");
    widen(home.path(), 0o1777);
    tighten(home.path());
    assert_eq!(mode(home.path()), 0o1777);
}

#[test]
fn a_secret_is_written_anew_whatever_was_left_over() {
    let home = tempfile::tempdir().expect("a folder");
    let (path, draft) = (home.path().join("root.key"), home.path().join("root.new"));
    std::fs::write(&draft, "half").expect("written");
    widen(&draft, 0o666);
    write(&path, b"secret\n").expect("written");
    assert_eq!((mode(&path), std::fs::read(&path).expect("read")), (0o600, b"secret\n".to_vec()));
    assert!(!draft.exists());
}
