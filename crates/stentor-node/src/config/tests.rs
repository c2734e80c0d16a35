use std::io::Write;

use super::*;

fn problem(text: &str) -> String {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(text.as_bytes()).expect("written");
    load_with(Some(file.path()), []).err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn an_address_or_key_in_a_wrong_format_is_refused_with_its_setting_and_without_its_text() {
    for (text, setting) in [
        ("[queue]\nengine = \"nats\"\nurl = \"http://secret@a\"\n", "queue.url: "),
        ("[store]\nengine = \"postgres\"\nurl = \"http://secret@a\"\n", "store.url: "),
        ("[secrets]\nkey = \"secret\"\n", "secrets.key: "),
    ] {
        let refusal = problem(text);
        assert!(refusal.contains(setting) && !refusal.contains("secret@"), "{text}: {refusal}");
    }
    assert_eq!(problem("store = \"postgres://db.example/stentor\"\nqueue = \"nats://a.example\"\n"), "");
}
