//! Vendors: words of one push service are used in its adapter's folder only.

use crate::finding::TidyFinding;
use crate::rust_file::RustFile;

/// Crates that know push services by their descriptors only.
const CRATES: &[&str] = &[
    "crates/stentor-core/src/",
    "crates/stentor-http2/src/",
    "crates/stentor-server/src/",
    "crates/stentor-storage/src/",
];

/// Words of one vendor, as parts of names and of prose.
const WORDS: &[&[&str]] = &[
    &["fcm"],
    &["apns"],
    &["firebase"],
    &["apple"],
    &["hms"],
    &["huawei"],
    &["service", "account"],
    &["team", "id"],
    &["bundle", "id"],
    &["key", "p8"],
];

/// A place where a vendor's words are right.
pub(crate) struct VendorPlace {
    /// The file, or the folder with a slash at its end.
    pub(crate) path: &'static str,
    /// The words, each by its parts.
    pub(crate) words: &'static [&'static [&'static str]],
    /// Reason for the exemption.
    #[expect(dead_code, reason = "written for the reader of the list")]
    pub(crate) reason: &'static str,
}

/// Every such place.
const PLACES: &[VendorPlace] = &[
    VendorPlace {
        path: "crates/stentor-core/src/provider.rs",
        words: &[&["fcm"], &["apns"], &["firebase"], &["apple"], &["hms"], &["huawei"]],
        reason: "the one table of names and persisted codes",
    },
    VendorPlace {
        path: "crates/stentor-core/src/message/record.rs",
        words: &[&["fcm"], &["apns"]],
        reason: "version 1 of the stored record named two push services by fields",
    },
    VendorPlace {
        path: "crates/stentor-core/src/device.rs",
        words: &[&["apple"]],
        reason: "a platform of devices bears this name",
    },
    VendorPlace {
        path: "crates/stentor-server/src/face/rest/openapi/words.rs",
        words: &[&["apple"]],
        reason: "a platform of devices bears this name",
    },
    VendorPlace {
        path: "crates/stentor-server/src/front/",
        words: &[&["fcm"], &["apns"], &["apple"], &["firebase"], &["huawei"], &["service", "account"]],
        reason: "a front speaks the API of a vendor",
    },
    VendorPlace {
        path: "crates/stentor-server/src/gateway/",
        words: &[&["fcm"]],
        reason: "devices of a vendor call the paths that are built into them",
    },
    VendorPlace {
        path: "crates/stentor-core/src/audit.rs",
        words: &[&["service", "account"]],
        reason: "the server issues such accounts itself, in the form that the fronts' clients know",
    },
    VendorPlace {
        path: "crates/stentor-server/src/contract/",
        words: &[&["service", "account"]],
        reason: "the same",
    },
    VendorPlace {
        path: "crates/stentor-server/src/service/accounts.rs",
        words: &[&["service", "account"]],
        reason: "the same",
    },
    VendorPlace {
        path: "crates/stentor-server/src/keys/",
        words: &[&["service", "account"]],
        reason: "the same",
    },
    VendorPlace {
        path: "crates/stentor-server/src/face/",
        words: &[&["service", "account"]],
        reason: "the same",
    },
    VendorPlace {
        path: "crates/stentor-core/src/limits.rs",
        words: &[&["fcm"], &["apns"]],
        reason: "the sources of the numbers",
    },
    VendorPlace {
        path: "crates/stentor-core/src/name.rs",
        words: &[&["fcm"]],
        reason: "the source of an alphabet",
    },
    VendorPlace {
        path: "crates/stentor-storage/src/conformance/",
        words: &[&["fcm"], &["apns"], &["apple"]],
        reason: "a suite of tests, which needs names of providers and does not care which",
    },
];

/// Reports every word of a vendor in one file.
pub(crate) fn check(file: &RustFile) -> Vec<TidyFinding> {
    check_with(file, PLACES)
}

/// Reports every word of a vendor in one file, with a given list of places.
pub(crate) fn check_with(file: &RustFile, places: &[VendorPlace]) -> Vec<TidyFinding> {
    if !CRATES.iter().any(|folder| file.path.starts_with(folder)) {
        return Vec::new();
    }
    let here = places.iter().filter(|place| covers(place.path, &file.path));
    let allowed: Vec<_> = here.flat_map(|place| place.words).collect();
    let wrong = WORDS.iter().filter(|word| !allowed.contains(word));
    let wrong: Vec<_> = wrong.collect();
    let lines = file.text.lines().enumerate().map(|(index, line)| (index + 1, line));
    let outside_tests = lines.filter(|(number, _)| !file.is_test_line(*number));
    outside_tests
        .filter_map(|(number, line)| {
            let said = parts_of_line(line);
            let word = wrong.iter().find(|word| said.windows(word.len()).any(|parts| parts == ***word))?;
            let sentence = format!(
                "\"{}\" is a vendor's word: use the adapter's Descriptor (stentor-providers) instead",
                word.join("_")
            );
            Some(TidyFinding::new(&file.path, number, sentence))
        })
        .collect()
}

fn covers(place: &str, path: &str) -> bool {
    if place.ends_with('/') { path.starts_with(place) } else { path == place }
}

/// Splits code and prose into lower-case words, names into their parts.
fn parts_of_line(line: &str) -> Vec<String> {
    let names = line.split(|c: char| !c.is_alphanumeric() && c != '_');
    names.flat_map(parts_of_name).collect()
}

/// A name as it is written, or an abbreviation with a small letter in it, such as the vendors have.
fn parts_of_name(name: &str) -> Vec<String> {
    let whole = name.to_lowercase();
    if WORDS.contains(&&[whole.as_str()][..]) { vec![whole] } else { parts(name) }
}

/// Splits a name in snake, camel or capital case into lower-case words.
pub(super) fn parts(name: &str) -> Vec<String> {
    let letters: Vec<char> = name.chars().collect();
    let mut parts = vec![String::new()];
    for (index, letter) in letters.iter().enumerate() {
        let after_lower = index > 0 && letters[index - 1].is_lowercase();
        let before_lower = index > 0 && letters.get(index + 1).is_some_and(|next| next.is_lowercase());
        if *letter == '_' || (letter.is_uppercase() && (after_lower || before_lower)) {
            parts.push(String::new());
        }
        if let Some(part) = parts.last_mut().filter(|_| *letter != '_') {
            part.extend(letter.to_lowercase());
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}
