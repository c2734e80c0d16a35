//! Foreign tools that judge the finished files. A judge that is not installed is named with its package, and does not count.

use std::path::Path;

use super::tool::{self, Tool, note};
use super::{Arch, Release};

/// The largest exposure of the unit that `systemd-analyze security` may find, in tenths.
const EXPOSURE_MAX_TENTHS: u32 = 30;

/// Returns the judges of the list that are installed.
fn installed(judges: &[(&'static str, &str)]) -> Vec<&'static str> {
    let (there, missing): (Vec<_>, Vec<_>) =
        judges.iter().copied().partition(|(program, _)| tool::is_installed(program));
    for (program, package) in missing {
        note(&format!("{program} did not judge: `apt-get install {package}`"));
    }
    there.into_iter().map(|(program, _)| program).collect()
}

/// Judges a package of Debian's; one for this machine also by a trial in a Debian of its own, which takes root.
pub(super) fn deb(release: &Release<'_>, arch: Arch, path: &Path) -> anyhow::Result<Vec<&'static str>> {
    let mut judges = installed(&[("lintian", "lintian")]);
    if !judges.is_empty() {
        let mut lintian = Tool::new("lintian", "lintian");
        lintian.args(["--fail-on", "error,warning", "--allow-root"]).args([path]).output()?;
    }
    if arch.is_native() && installed(&[("debootstrap", "debootstrap"), ("piuparts", "piuparts")]).len() == 2 {
        let trial = release.workspace.root.join("packaging/deb/trial");
        let base = release.workspace.metadata.target_directory.join("packaging/debian.tar.gz");
        Tool::new(&trial.to_string_lossy(), "bash").args([path, base.as_std_path()]).show()?;
        judges.push("piuparts");
    }
    Ok(judges)
}

/// Judges the unit of the service.
pub(super) fn unit(path: &Path) -> anyhow::Result<Vec<&'static str>> {
    let judges = installed(&[("systemd-analyze", "systemd")]);
    if !judges.is_empty() {
        let mut analyze = Tool::new("systemd-analyze", "systemd");
        analyze.args(["security", "--offline=true", &format!("--threshold={EXPOSURE_MAX_TENTHS}")]);
        analyze.args([path]).output()?;
    }
    Ok(judges)
}

/// Judges a bill of materials by the schema of its form.
pub(super) fn bill(release: &Release<'_>, path: &Path) -> anyhow::Result<Vec<&'static str>> {
    let target = &release.workspace.metadata.target_directory;
    let python = target.join("packaging/venv/bin/python").into_std_path_buf();
    if !python.is_file() {
        note("no schema judged the bill of materials: packaging/install");
        return Ok(Vec::new());
    }
    let script = release.workspace.root.join("packaging/judge-bill.py");
    Tool::new(&python.to_string_lossy(), "python3-venv").args([&script, path]).output()?;
    Ok(vec!["cyclonedx"])
}

/// Judges an image; the server's, if it is for this machine, also by running it.
pub(super) fn image(
    release: &Release<'_>,
    arch: Arch,
    name: &str,
    path: &Path,
) -> anyhow::Result<Vec<&'static str>> {
    let mut judges = installed(&[("skopeo", "skopeo"), ("umoci", "umoci"), ("crun", "crun"), ("jq", "jq")]);
    if judges.len() < 4 {
        return Ok(Vec::new());
    }
    let work = tool::empty(release.scratch.join(format!("judged-{name}-{}", arch.debian())))?;
    let is_run = arch.is_native() && name == "stentor";
    let trial = release.workspace.root.join("packaging/container/trial");
    let mut run = Tool::new(&trial.to_string_lossy(), "bash");
    run.args([path, &work]).args(is_run.then_some("run")).output()?;
    judges.retain(|judge| *judge != "jq" && (is_run || *judge != "crun"));
    Ok(judges)
}
