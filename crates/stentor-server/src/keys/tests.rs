use super::*;

#[test]
fn a_new_secret_looks_like_a_key_and_is_never_the_same() {
    let (one, two) = (new_secret(), new_secret());
    assert!(looks_like_key(one.expose_secret()));
    assert_ne!(one.expose_secret(), two.expose_secret());
    assert!(!looks_like_key("sk_short") && !looks_like_key(&"x".repeat(46)));
}

#[test]
fn the_root_key_is_made_once_and_nobody_else_may_read_it() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    let first = root_key(folder.path()).expect("made");
    let again = root_key(folder.path()).expect("read");
    assert_eq!(first.expose_secret(), again.expose_secret());
    let mode = std::fs::metadata(folder.path().join(ROOT_KEY_FILE)).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn the_same_secret_has_another_hash_in_another_installation() {
    let (here, there) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let (a, b) = (Pepper::of(here.path()).expect("made"), Pepper::of(there.path()).expect("made"));
    let secret = new_secret();
    let hash = a.hash(secret.expose_secret());
    assert!(!same_hash(&hash, &b.hash(secret.expose_secret())));
    let reopened = Pepper::of(here.path()).expect("read");
    assert!(same_hash(&hash, &reopened.hash(secret.expose_secret())));
}

#[test]
fn a_damaged_root_key_file_is_said_so() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join(ROOT_KEY_FILE), "nonsense\n").expect("written");
    let error = root_key(folder.path()).expect_err("refused");
    assert!(error.to_string().contains("remove it to get a new one"), "{error}");
}
