//! Passes the version of the compiler to the crate, so that records can name it.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let compiler = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let version = Command::new(compiler).arg("--version").output().map(|output| output.stdout);
    let version = version.map(|text| String::from_utf8_lossy(&text).trim().to_owned()).unwrap_or_default();
    println!("cargo:rustc-env=STENTOR_COMPILER={version}");
}
