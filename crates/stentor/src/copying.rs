//! How the C library copies memory: on AMD's processors older ones choose an instruction that is slow there.
//!
//! From 2 KiB on, the glibc of Debian 12 (2.36; its bug 30994) copies with `rep movsb`. Only a variable of the environment
//! can tell it not to, and only before a program starts: so the server and the emulators start once more with it.
//!
//! This is for builds against glibc, as `cargo build --release` makes them: there it brought 1.33 s down to 1.25 s (medians of
//! eight in turns, docs/performance.md). The static binary that is handed out is linked against musl, to which the variable
//! means nothing: it never starts anew. How musl's own copying does on these processors has not been measured.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::Command;

const VARIABLE: &str = "GLIBC_TUNABLES";
const TUNABLE: &str = "glibc.cpu.x86_rep_movsb_threshold";
/// No copy is as long as this.
const NEVER_BYTES: &str = "0x10000000000";
/// Enough of /proc/cpuinfo for the vendor of the first processor.
const LOOK_BYTES: u64 = 256;

/// Starts this process anew with a better way of copying, where that is needed and the variable does not decide it yet.
pub(crate) fn restart_with_tunable() {
    let set = std::env::var_os(VARIABLE);
    let Some(tunables) = wanted(&processor(), set.as_deref()) else { return };
    let Ok(program) = std::env::current_exe() else { return };
    let mut arguments = std::env::args_os();
    let name = arguments.next().unwrap_or_else(|| "stentor".into());
    // It returns only where it fails, and then copies are only slower.
    let _ = Command::new(program).arg0(name).args(arguments).env(VARIABLE, tunables).exec();
}

/// Returns the variable's new value, if it must be set.
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

/// Reads what the system says of the first processor.
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
