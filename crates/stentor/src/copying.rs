//! The C library's copying of memory: on AMD's processors older versions choose an instruction that is slow there.
//!
//! From 2 KiB on, the glibc of Debian 12 (2.36; its bug 30994) copies with `rep movsb`. Only an environment variable can disable this, and
//! only before a program starts: so the server and the emulators restart themselves with the variable.
//!
//! This is for builds against glibc, as `cargo build --release` makes them: there it reduced 1.33 s to 1.25 s (medians of eight in turns,
//! docs/performance.md). The distributed static binary is linked against musl, which ignores the variable: it never restarts. The speed of
//! musl's own copying on these processors has not been measured.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::Command;

const VARIABLE: &str = "GLIBC_TUNABLES";
const TUNABLE: &str = "glibc.cpu.x86_rep_movsb_threshold";
/// A threshold that no copy reaches.
const NEVER_BYTES: &str = "0x10000000000";
/// Bytes of /proc/cpuinfo that include the vendor of the first processor.
const LOOK_BYTES: u64 = 256;

/// Restarts this process with a faster way of copying, if the processor needs it and the variable is not set yet.
pub(crate) fn restart_with_tunable() {
    let set = std::env::var_os(VARIABLE);
    let Some(tunables) = wanted(&processor(), set.as_deref()) else { return };
    let Ok(program) = std::env::current_exe() else { return };
    let mut arguments = std::env::args_os();
    let name = arguments.next().unwrap_or_else(|| "stentor".into());
    // It returns only on failure, and then copies are merely slower.
    let _ = Command::new(program).arg0(name).args(arguments).env(VARIABLE, tunables).exec();
}

/// Returns the variable's new value if it must be set.
fn wanted(processor: &str, set: Option<&OsStr>) -> Option<OsString> {
    let affected = cfg!(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"));
    if !affected || !processor.contains("AuthenticAMD") {
        return None;
    }
    let ours = format!("{TUNABLE}={NEVER_BYTES}");
    match set.filter(|set| !set.is_empty()) {
        None => Some(ours.into()),
        Some(set) if set.to_string_lossy().contains(TUNABLE) => None,
        Some(set) => {
            let mut both = set.to_owned();
            both.push(":");
            both.push(ours);
            Some(both)
        }
    }
}

/// Reads the system's description of the first processor.
fn processor() -> String {
    let mut text = Vec::new();
    let read =
        std::fs::File::open("/proc/cpuinfo").and_then(|file| file.take(LOOK_BYTES).read_to_end(&mut text));
    read.map(|_| String::from_utf8_lossy(&text).into_owned()).unwrap_or_default()
}

#[cfg(all(test, target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
mod tests {
    use super::*;

    const AMD: &str = "processor\t: 0\nvendor_id\t: AuthenticAMD\n";

    fn value(processor: &str, set: Option<&str>) -> Option<String> {
        wanted(processor, set.map(OsStr::new)).map(|value| value.to_string_lossy().into_owned())
    }

    #[test]
    fn the_tunable_is_set_on_the_processors_that_need_it_and_nowhere_else() {
        let wanted = "glibc.cpu.x86_rep_movsb_threshold=0x10000000000";
        assert_eq!(value(AMD, None).as_deref(), Some(wanted));
        assert_eq!(value(AMD, Some("")).as_deref(), Some(wanted));
        assert_eq!(value("vendor_id\t: GenuineIntel\n", None), None);
        assert_eq!(value("", None), None);
    }

    #[test]
    fn what_the_user_has_set_is_kept_and_a_second_start_changes_nothing() {
        let other = "glibc.malloc.arena_max=2";
        let both = value(AMD, Some(other)).expect("set");
        assert!(both.starts_with(other) && both.contains(TUNABLE), "{both}");
        assert_eq!(value(AMD, Some(&both)), None);
        assert_eq!(value(AMD, Some("glibc.cpu.x86_rep_movsb_threshold=4096")), None);
    }
}
