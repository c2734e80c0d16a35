//! Requirements of foreign subjects: programs, with a version, and extensions of PHP. They are detected and reported, never installed.

use serde::Serialize;
use std::collections::BTreeMap;
use std::process::{Command, Stdio};

/// Suffix of a requirement of the build only.
const TO_BUILD: &str = " to build";
/// Prefix of a requirement for a PHP extension.
const PHP_EXTENSION: &str = "php-";

/// Prefix of a package's name.
const DEBIAN: &str = "Debian: ";

/// A PHP script that loads Zend Framework 1 from the user's path and prints its version.
const ZEND: &str =
    "(include getenv('ZEND_PATH') . '/Zend/Version.php') || exit(1); echo Zend_Version::VERSION;";

/// Known programs by name, each with the command that prints its version and the package that provides it.
const PROGRAMS: [(&str, &[&str], &str); 8] = [
    ("java", &["java", "-version"], "Debian: openjdk-17-jre-headless"),
    ("javac", &["javac", "-version"], "Debian: openjdk-17-jdk-headless"),
    ("mvn", &["mvn", "-v"], "Debian: maven"),
    ("php", &["php", "-v"], "Debian: php8.2-cli"),
    ("python", &["python3", "--version"], "Debian: python3"),
    ("cc", &["cc", "--version"], "Debian: gcc"),
    (
        "expat",
        &["cc", "-fsyntax-only", "-include", "expat.h", "-x", "c", "/dev/null"],
        "Debian: libexpat1-dev",
    ),
    (
        "zend",
        &["php", "-r", ZEND],
        "zf1-future, its folder library named by ZEND_PATH; until then tables 3 to 5 not rerun",
    ),
];

/// A missing requirement, with the package that provides it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Missing {
    /// The requirement, as in the definition.
    pub need: String,
    /// The installed version, if it is too old.
    pub found: Option<String>,
    /// The package that provides it, if known.
    pub brought_by: Option<String>,
}

/// Detects programs, each only once.
#[derive(Debug, Default)]
pub struct Probes {
    said: BTreeMap<String, Option<String>>,
}

/// Returns true if only the build has this requirement.
#[must_use]
pub fn is_to_build(need: &str) -> bool {
    need.ends_with(TO_BUILD)
}

/// Returns the Debian package that provides a requirement, if one is known.
#[must_use]
pub fn debian_package(need: &str) -> Option<String> {
    let requirement = need.strip_suffix(TO_BUILD).unwrap_or(need).trim();
    let name = requirement.split(">=").next().unwrap_or_default();
    brought_by(name)?.strip_prefix(DEBIAN).map(str::to_owned)
}

impl Probes {
    /// Returns the unmet part of a requirement: `NAME`, `NAME>=VERSION`, or one of these and ` to build`.
    pub fn missing(&mut self, need: &str) -> Option<Missing> {
        let requirement = need.strip_suffix(TO_BUILD).unwrap_or(need).trim();
        let (name, version) = requirement.split_once(">=").unwrap_or((requirement, ""));
        let missing =
            |found: Option<String>| Some(Missing { need: need.into(), found, brought_by: brought_by(name) });
        if let Some(extension) = name.strip_prefix(PHP_EXTENSION) {
            let modules = self.ask("php -m", &["php", "-m"]).unwrap_or_default();
            let is_there = modules.lines().any(|line| line.trim().eq_ignore_ascii_case(extension));
            return if is_there { None } else { missing(None) };
        }
        let unknown = [name, "--version"];
        let command = PROGRAMS.iter().find(|(known, ..)| *known == name).map_or(&unknown[..], |one| one.1);
        let Some(said) = self.ask(name, command) else { return missing(None) };
        let found = version_in(&said).unwrap_or_default();
        if numbers(&found) >= numbers(version) { None } else { missing(Some(found)) }
    }

    /// Runs a program and caches its output; `None` if it cannot be started or fails.
    fn ask(&mut self, name: &str, command: &[&str]) -> Option<String> {
        self.said.entry(name.to_owned()).or_insert_with(|| ask(command)).clone()
    }
}

fn ask(command: &[&str]) -> Option<String> {
    let (program, arguments) = command.split_first()?;
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output().ok()?;
    // Java prints its version on standard error.
    let said = [output.stdout, output.stderr].concat();
    output.status.success().then(|| String::from_utf8_lossy(&said).into_owned())
}

fn brought_by(name: &str) -> Option<String> {
    let known = PROGRAMS.iter().find(|(known, ..)| *known == name).map(|(.., package)| (*package).to_owned());
    known.or_else(|| name.strip_prefix(PHP_EXTENSION).map(|extension| format!("Debian: php8.2-{extension}")))
}

/// Finds a version in a program's output: the first number with a dot, or else the first number.
fn version_in(said: &str) -> Option<String> {
    let words = || {
        said.split(|letter: char| !letter.is_ascii_digit() && letter != '.')
            .filter(|word| !numbers(word).is_empty())
    };
    let dotted = words().find(|word| word.trim_matches('.').contains('.'));
    dotted.or_else(|| words().next()).map(|word| word.trim_matches('.').to_owned())
}

fn numbers(version: &str) -> Vec<u64> {
    version.split('.').filter_map(|number| number.parse().ok()).collect()
}

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.need)?;
        if let Some(found) = self.found.as_deref().filter(|found| !found.is_empty()) {
            write!(f, ", found {found}")?;
        }
        self.brought_by.as_ref().map_or(Ok(()), |package| write!(f, " ({package})"))
    }
}

#[cfg(test)]
mod tests;
