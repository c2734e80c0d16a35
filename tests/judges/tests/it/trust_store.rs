//! The authority of a room in the form that Java reads: a PKCS #12 file beside the authority's own.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

/// A trust store holds no secret, but the tool makes none without a password of six characters.
const PASSWORD: &str = "changeit";

/// Writes the store, if it is not there.
pub(crate) fn make(authority: &Path) -> anyhow::Result<()> {
    if place(authority).exists() {
        return Ok(());
    }
    let mut command = Command::new("keytool");
    command.args(["-importcert", "-noprompt", "-alias", "room", "-storetype", "PKCS12"]);
    command.args(["-storepass", PASSWORD]).arg("-file").arg(authority).arg("-keystore").arg(place(authority));
    let output = command.output().context("keytool cannot be started")?;
    ensure!(output.status.success(), "keytool ended with {}: {output:?}", output.status);
    Ok(())
}

/// Returns the options with which Java trusts the store of this authority, and no other one.
pub(crate) fn options(authority: &Path) -> [String; 2] {
    let place = place(authority);
    [
        format!("-Djavax.net.ssl.trustStore={}", place.display()),
        format!("-Djavax.net.ssl.trustStorePassword={PASSWORD}"),
    ]
}

fn place(authority: &Path) -> PathBuf {
    authority.with_extension("p12")
}
