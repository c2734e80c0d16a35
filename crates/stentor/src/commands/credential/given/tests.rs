use serde_json::json;

use super::*;

fn set(arguments: &[&str]) -> Result<CredentialSet, clap::Error> {
    let command = CredentialSet::augment_args(Command::new("set").no_binary_name(true));
    CredentialSet::from_arg_matches(&command.try_get_matches_from(arguments)?)
}

fn body(arguments: &[&str]) -> Value {
    set(arguments).expect("options").body().expect("a credential")
}

#[test]
fn a_key_and_its_id_come_from_the_file_and_all_else_from_options() {
    let folder = tempfile::tempdir().expect("a folder");
    let key = folder.path().join("AuthKey_ABC123DEFG.p8");
    std::fs::write(&key, "the key").expect("a file");
    let key = key.to_str().expect("a path");
    let named = ["--provider", "APNS", key, "--team-id", "T", "--bundle-id", "b", "--max-connections", "3"];
    let given = json!({"key_p8": "the key", "key_id": "ABC123DEFG", "team_id": "T", "bundle_id": "b"});
    let mut wanted = given.clone();
    wanted["max_connections"] = 3.into();
    assert_eq!(body(&named), wanted);
    let missing = set(&["--provider", "apns", key, "--team-id", "T"]).expect("options").body();
    assert_eq!(missing.expect_err("incomplete").to_string(), "--bundle-id is needed for APNs");
}

#[test]
fn a_service_account_is_read_as_json_and_other_services_options_are_left_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let [account, ca] = [("account.json", "{\"type\": \"x\"}"), ("ca.pem", "roots")].map(|(name, text)| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path.to_str().expect("a path").to_owned()
    });
    let named = ["--provider", "fcm", &account, "--team-id", "T", "--ca", &ca, "--quota", "none"];
    let wanted = json!({"service_account": {"type": "x"}, "ca_pem": "roots", "quota": "none"});
    assert_eq!(body(&named), wanted);
    let wrong = set(&["--provider", "fcm", &ca]).expect("options").body().expect_err("no JSON").to_string();
    assert!(wrong.contains("is not a service account") && wrong.contains("the Firebase console"), "{wrong}");
    assert_eq!(body(&["--provider", "null"]), json!({}));
}

#[test]
fn what_no_push_service_takes_is_refused_before_anything_is_sent() {
    for wrong in [["--environment", "staging"], ["--quota", "-1"], ["--max-connections", "many"]] {
        assert!(set(&["--provider", "apns", wrong[0], wrong[1]]).is_err(), "{wrong:?}");
    }
    assert!(set(&["--provider", "pigeon"]).is_err());
    let missing = set(&["--provider", "fcm"]).expect("options").body().expect_err("no file");
    assert_eq!(missing.to_string(), "name the credential's file");
}
