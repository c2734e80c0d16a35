//! Every fuzz target, compiled as a module: a target that no longer fits the crates that it tests fails here, and not at the next run of
//! the fuzzer, which needs another compiler. Each is fed its seeds, as libFuzzer would feed them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

// The targets name the library for which they are written; here it is this crate, with a macro of the same name.
extern crate self as libfuzzer_sys;

/// A target's name, and its function for an input.
type Target = (&'static str, fn(&[u8]));

#[expect(
    unused_attributes,
    reason = "each target is the root of a crate where it is fuzzed, and says `no_main`"
)]
#[allow(clippy::all, reason = "only whether they compile is asked here")]
#[path = "../../../../fuzz/fuzz_targets"]
mod targets {
    macro_rules! targets {
        ($($name:ident),* $(,)?) => {
            $(mod $name;)*

            /// All of them.
            pub(crate) const ALL: &[super::Target] = &[$((stringify!($name), $name::fuzz)),*];
        };
    }

    targets! {
        autopush_frames,
        calendar,
        condition,
        credentials,
        device_keys,
        emulator_apns,
        emulator_ccs,
        emulator_fcm,
        emulator_frames,
        emulator_gcm,
        emulator_policy,
        emulator_web_push,
        emulator_wns,
        gateway_ccs,
        gateway_mcs,
        ids,
        import_lines,
        lab_files,
        ledger_blobs,
        mcs_http,
        message_record,
        mqtt_packets,
        observer_file,
        protobuf_record,
        provider_answers,
        provider_payloads,
        request_headers,
        request_record,
        sender_frames,
        server_config,
        server_exchange,
        server_requests,
        server_socket,
        service_document,
        sink_frames,
        web_push_headers,
        wire_soap,
        wire_values,
        wire_xml,
        wire_xmlrpc,
        xml_record,
    }
}

// Below the targets, which would otherwise find it without naming the library.
/// Defines a function for a fuzz target that takes an input as libFuzzer does.
#[macro_export]
macro_rules! fuzz_target {
    (|$input:ident: $kind:ty| $body:block) => {
        pub(crate) fn fuzz(bytes: &[u8]) {
            let given = arbitrary::Unstructured::new(bytes);
            let Ok($input) = <$kind as arbitrary::Arbitrary>::arbitrary_take_rest(given) else { return };
            $body
        }
    };
}

fn fuzz_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

fn manifest() -> toml::Table {
    let text = std::fs::read_to_string(fuzz_folder().join("Cargo.toml")).expect("a manifest");
    text.parse().expect("TOML")
}

#[test]
fn every_target_is_compiled_here_and_named_in_the_manifest_of_the_fuzzer() {
    let files = std::fs::read_dir(fuzz_folder().join("fuzz_targets")).expect("a folder");
    let files = files.map(|file| file.expect("a file").path().file_stem().expect("a name").to_owned());
    let files: BTreeSet<String> = files.map(|name| name.into_string().expect("UTF-8")).collect();
    let here: BTreeSet<String> = targets::ALL.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(here, files);
    let manifest = manifest();
    let named = manifest["bin"].as_array().expect("targets").iter().map(|bin| bin["name"].as_str());
    assert_eq!(named.map(|name| name.expect("a name").to_owned()).collect::<BTreeSet<_>>(), files);
}

#[test]
fn the_fuzzer_has_the_libraries_that_the_targets_have_here() {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"));
    let own: toml::Table = text.expect("a manifest").parse().expect("TOML");
    let names = |table: &toml::Value, but: &[&str]| -> BTreeSet<String> {
        let names = table.as_table().expect("a table").keys();
        names.filter(|name| !but.contains(&name.as_str())).cloned().collect()
    };
    // `arbitrary` comes with libfuzzer-sys; TOML and zstd are read by these tests alone.
    assert_eq!(
        names(&manifest()["dependencies"], &["libfuzzer-sys"]),
        names(&own["dev-dependencies"], &["arbitrary", "toml", "zstd"])
    );
}

/// Returns the inputs of a target: files, and compressed lines of hexadecimal digits, which the fuzzer has kept.
fn seeds(name: &str) -> Vec<Vec<u8>> {
    let folder = fuzz_folder().join("seeds");
    let files = std::fs::read_dir(folder.join(name)).into_iter().flatten();
    let files = files.map(|seed| std::fs::read(seed.expect("a seed").path()).expect("a file"));
    // A target may have only one of both.
    let packed = std::fs::read(folder.join(format!("{name}.hex.zst")));
    let unpacked = packed.map_or_else(|_| Vec::new(), |packed| zstd::decode_all(&*packed).expect("zstd"));
    files.chain(str::from_utf8(&unpacked).expect("ASCII").lines().map(bytes_of_hex)).collect()
}

fn bytes_of_hex(line: &str) -> Vec<u8> {
    assert!(line.len().is_multiple_of(2), "{line}");
    line.as_bytes().chunks_exact(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

/// Returns the value of a hexadecimal digit.
fn digit(character: u8) -> u8 {
    match character {
        b'0'..=b'9' => character - b'0',
        b'a'..=b'f' => character - b'a' + 10,
        _ => panic!("{character} is no digit"),
    }
}

#[test]
fn every_seed_goes_through_its_target() {
    let mut fed = 0;
    for (name, fuzz) in targets::ALL {
        for seed in seeds(name) {
            fuzz(&seed);
            fed += 1;
        }
    }
    assert!(fed > 10_000, "{fed} seeds");
}
