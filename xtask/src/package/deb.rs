//! The package for Debian and Ubuntu, made by debhelper from packaging/deb.

use std::path::Path;

use anyhow::Context;

use super::binary::StaticBinary;
use super::tool::{self, Tool};
use super::{PackedFile, Release, judges};

/// The units of systemd; the package's binary is not in /usr/local.
const UNITS: [&str; 2] = ["stentor.service", "stentor@.service"];
/// Files of packaging/deb that debhelper finds beside its own folder.
const PAYLOAD: [&str; 2] = ["stentor.toml", "stentor.1"];

/// Makes the package of a binary.
pub(super) fn write(
    release: &Release<'_>,
    binary: &StaticBinary,
    licences: &PackedFile,
) -> anyhow::Result<PackedFile> {
    let debian = binary.arch.debian();
    let work = tool::empty(release.scratch.join(format!("deb-{debian}")))?;
    let source = work.join(format!("stentor-{}", release.version));
    fill(release, binary, licences, &source)?;
    let mut build = Tool::new("dpkg-buildpackage", "dpkg-dev debhelper");
    build.args(["--build=binary", "--unsigned-changes", "--unsigned-buildinfo", "--no-check-builddeps"]);
    build.args([format!("--host-arch={debian}")]).env("SOURCE_DATE_EPOCH", &release.epoch);
    // Debhelper asks for a compiler of the other processor only to find none to use.
    build.env("CC", "cc").folder(&source).output()?;
    let file = format!("stentor_{}_{debian}.deb", release.version);
    let path = release.folder.join(&file);
    tool::copy(&work.join(&file), &path)?;
    let mut checked_by = judges::deb(release, binary.arch, &path)?;
    checked_by.extend(judges::unit(&source.join("debian/stentor.service"))?);
    Ok(PackedFile { path, checked_by })
}

/// Fills the folder that debhelper reads.
fn fill(
    release: &Release<'_>,
    binary: &StaticBinary,
    licences: &PackedFile,
    source: &Path,
) -> anyhow::Result<()> {
    let packaging = release.workspace.root.join("packaging");
    let debian = source.join("debian");
    for entry in std::fs::read_dir(packaging.join("deb"))? {
        let entry = entry?;
        tool::copy(&entry.path(), &debian.join(entry.file_name()))?;
    }
    for file in PAYLOAD {
        std::fs::rename(debian.join(file), source.join(file)).with_context(|| file.to_owned())?;
    }
    for unit in UNITS {
        let text = std::fs::read_to_string(packaging.join("systemd").join(unit))?;
        std::fs::write(debian.join(unit), text.replace("/usr/local/bin/", "/usr/bin/"))?;
    }
    tool::copy(&binary.file.path, &source.join("stentor"))?;
    tool::copy(&licences.path, &source.join("licences.txt"))?;
    std::fs::write(debian.join("changelog"), changelog(release)?)?;
    Ok(())
}

/// The changelog that gives the package its version and its date.
fn changelog(release: &Release<'_>) -> anyhow::Result<String> {
    let control = std::fs::read_to_string(release.workspace.root.join("packaging/deb/control"))?;
    let maintainer = control.lines().find_map(|line| line.strip_prefix("Maintainer: "));
    let maintainer = maintainer.context("packaging/deb/control names no maintainer")?;
    let date = release.date("+%a, %d %b %Y %H:%M:%S +0000")?;
    let version = &release.version;
    Ok(format!(
        "stentor ({version}) unstable; urgency=medium\n\n  * Version {version}: see CHANGELOG.md of the project.\n\n -- {maintainer}  {date}\n"
    ))
}
