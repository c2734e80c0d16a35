//! The packages of the clients, the libraries for devices and the test kits: wheels for Python, archives for npm, jars.

use std::path::{Path, PathBuf};

use anyhow::Context;

use super::tool::{self, Tool};
use super::{PackedFile, Release, name};
use crate::codegen;

/// The packages in Python, with the module of each.
const WHEELS: [(&str, &str); 3] = [
    ("clients/python", "stentor"),
    ("clients/python-device", "stentor_device"),
    ("clients/python-emulators", "pytest_stentor"),
];
/// The packages for npm, with their names.
const NPM: [(&str, &str); 2] =
    [("clients/typescript", "stentor-client"), ("clients/node-emulators", "stentor-emulators")];
const JAR: (&str, &str) = ("clients/java-device/src", "stentor.device.Device");
/// The test kit for JUnit, which has dependencies and is built by Maven, and one of its classes.
const MAVEN: (&str, &str) = ("clients/java-emulators", "stentor.junit.FcmEmulator");
/// The oldest Java that runs the jar.
const JAVA_RELEASE: &str = "11";

/// Makes all of them from the files that git keeps and those that are generated.
pub(super) fn write(release: &Release<'_>) -> anyhow::Result<Vec<PackedFile>> {
    codegen::write_clients(release.workspace)?;
    let sources = tool::empty(release.scratch.join("clients"))?;
    let files = client_files(&release.workspace.tracked_files()?);
    for file in &files {
        tool::copy(&release.workspace.root.join(file), &sources.join(file))?;
    }
    let mut packed = Vec::new();
    for (client, module) in WHEELS {
        packed.push(wheel(release, &sources.join(client), module)?);
    }
    for (client, module) in NPM {
        packed.push(npm(release, &sources.join(client), module)?);
    }
    packed.push(jar(release, &sources.join(JAR.0), JAR.1)?);
    packed.push(maven(release, &sources.join(MAVEN.0), MAVEN.1)?);
    Ok(packed)
}

/// Lists the files of the clients: those that git keeps, and those that are generated.
fn client_files(tracked: &[String]) -> Vec<String> {
    let sources = tracked.iter().filter(|path| path.starts_with("clients/"));
    sources.cloned().chain(codegen::client_paths().map(str::to_owned)).collect()
}

/// Makes a wheel and installs it in an empty environment.
fn wheel(release: &Release<'_>, source: &Path, module: &str) -> anyhow::Result<PackedFile> {
    let target = &release.workspace.metadata.target_directory;
    let python = target.join("packaging/venv/bin/python").into_string();
    let out = tool::empty(release.scratch.join(format!("wheel-{module}")))?;
    let mut build = Tool::new(&python, "python3-venv (packaging/install)");
    build.args(["-m", "build", "--wheel", "--no-isolation", "--outdir"]).args([&out, source]);
    build.env("SOURCE_DATE_EPOCH", &release.epoch).output()?;
    let path = finish(release, &only(&out)?)?;
    let venv = out.join("venv");
    Tool::new("python3", "python3-venv").args(["-m", "venv"]).args([&venv]).output()?;
    let installed = venv.join("bin/python").to_string_lossy().into_owned();
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    Tool::new(&installed, "python3-venv").args(pip).args([&path]).output()?;
    Tool::new(&installed, "python3-venv").args(["-c", &format!("import {module}")]).output()?;
    Ok(PackedFile { path, checked_by: vec!["pip"] })
}

/// Makes a package for npm and installs it in an empty folder.
fn npm(release: &Release<'_>, source: &Path, module: &str) -> anyhow::Result<PackedFile> {
    let quiet = ["--silent", "--no-audit", "--no-fund"];
    // Without a lock file, the package is written by hand and needs nothing.
    if source.join("package-lock.json").exists() {
        for arguments in [["ci"].as_slice(), &["run", "build"]] {
            Tool::new("npm", "npm").args(arguments).args(quiet).folder(source).output()?;
        }
    }
    let out = tool::empty(release.scratch.join(format!("npm-{module}")))?;
    Tool::new("npm", "npm")
        .args(["pack", "--silent", "--pack-destination"])
        .args([&out])
        .folder(source)
        .output()?;
    let path = finish(release, &only(&out)?)?;
    Tool::new("npm", "npm").args(["install"]).args(quiet).args([&path]).folder(&out).output()?;
    let import = format!("await import('{module}')");
    Tool::new("node", "nodejs").args(["--input-type=module", "--eval", &import]).folder(&out).output()?;
    Ok(PackedFile { path, checked_by: vec!["npm"] })
}

/// Makes the jar, in which every file has the date of the commit.
fn jar(release: &Release<'_>, source: &Path, class: &str) -> anyhow::Result<PackedFile> {
    let classes = tool::empty(release.scratch.join("classes"))?;
    let mut files = Vec::new();
    java_files(source, &mut files)?;
    files.sort();
    let mut compile = Tool::new("javac", "default-jdk-headless");
    compile.args(["--release", JAVA_RELEASE, "-d"]).args([&classes]).args(files).output()?;
    let path = release.folder.join(format!("stentor-device-{}.jar", release.version));
    let mut pack = Tool::new("jar", "default-jdk-headless");
    pack.args(["--create", &format!("--date={}", release.date("+%FT%TZ")?)]);
    pack.args([format!("--file={}", path.display()), ".".to_owned()]).folder(&classes).output()?;
    Tool::new("javap", "default-jdk-headless").args(["-cp"]).args([&path]).args([class]).output()?;
    Ok(PackedFile { path, checked_by: vec!["javap"] })
}

/// Makes a jar by Maven, in which every file has the date of the commit.
fn maven(release: &Release<'_>, source: &Path, class: &str) -> anyhow::Result<PackedFile> {
    let date = format!("-Dproject.build.outputTimestamp={}", release.date("+%FT%TZ")?);
    let mut build = Tool::new("mvn", "maven");
    build.args(["--quiet", "--batch-mode", "-Dmaven.test.skip=true", &date, "package"]);
    build.folder(source).output()?;
    let jars = std::fs::read_dir(source.join("target"))?.map(|entry| Ok(entry?.path()));
    let jars = jars.collect::<std::io::Result<Vec<_>>>()?;
    let jar = jars.iter().find(|path| path.extension().is_some_and(|extension| extension == "jar"));
    let path = finish(release, jar.context("Maven wrote no jar")?)?;
    Tool::new("javap", "default-jdk-headless").args(["-cp"]).args([&path]).args([class]).output()?;
    Ok(PackedFile { path, checked_by: vec!["javap"] })
}

fn java_files(folder: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            java_files(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "java") {
            files.push(path);
        }
    }
    Ok(())
}

/// Returns the one file that a tool has written into a folder.
fn only(folder: &Path) -> anyhow::Result<PathBuf> {
    let entry = std::fs::read_dir(folder)?.next().context("the tool wrote no file")?;
    Ok(entry?.path())
}

fn finish(release: &Release<'_>, file: &Path) -> anyhow::Result<PathBuf> {
    let path = release.folder.join(name(file));
    tool::copy(file, &path)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_comes_with_its_generated_half() {
        let tracked = ["README.md", "clients/python/README.md", "clients/python-device/README.md"];
        let files = client_files(&tracked.map(str::to_owned));
        assert_eq!(files[..2], tracked[1..]);
        assert!(files.contains(&"clients/typescript/src/types.ts".to_owned()), "{files:?}");
    }
}
