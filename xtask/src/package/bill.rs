//! The bill of materials of a binary in CycloneDX's form (ECMA-424, version 1.6): every package of Rust that is linked, with its licence
//! and the sum that Cargo.lock has of it.
//!
//! Not by cargo-cyclonedx, which writes beside the manifests and leaves the sums out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, ensure};
use cargo_metadata::{CargoOpt, DependencyKind, Metadata, MetadataCommand, Package, PackageId};
use serde_json::{Value, json};

use super::tool::Tool;
use super::{Arch, PackedFile, Release, judges};

/// Writes the bill of the binary for a processor; returns its packages too.
pub(super) fn write(release: &Release<'_>, arch: Arch) -> anyhow::Result<(PackedFile, Vec<Package>)> {
    let metadata = metadata(release, arch)?;
    let packages = packages(release, arch, &metadata)?;
    let lock = std::fs::read_to_string(release.workspace.root.join("Cargo.lock"))?;
    let bill = bill(release, &metadata, &packages, &sums(&lock))?;
    let path = release.folder.join(format!("stentor-{}-linux-{}.cdx.json", release.version, arch.debian()));
    std::fs::write(&path, serde_json::to_string_pretty(&bill)? + "\n")?;
    let checked_by = judges::bill(release, &path)?;
    Ok((PackedFile { path, checked_by }, packages))
}

/// Reads the packages for one processor, with their edges.
fn metadata(release: &Release<'_>, arch: Arch) -> anyhow::Result<Metadata> {
    let manifest = release.workspace.root.join("crates/stentor/Cargo.toml");
    let options = ["--locked", "--filter-platform", arch.target()].map(str::to_owned);
    let mut command = MetadataCommand::new();
    command.manifest_path(manifest).features(CargoOpt::SomeFeatures(vec!["nats".to_owned()]));
    command.other_options(options.to_vec()).exec().context("cargo metadata failed")
}

/// Lists the packages that are linked into the binary. Cargo's metadata joins the features of all members; its tree has those of one.
fn packages(release: &Release<'_>, arch: Arch, metadata: &Metadata) -> anyhow::Result<Vec<Package>> {
    let mut tree = Tool::new("cargo", "rustup");
    tree.args([
        "tree",
        "--locked",
        "--package",
        "stentor",
        "--features",
        "stentor/nats",
        "--target",
        arch.target(),
    ]);
    tree.args(["--edges", "normal,no-proc-macro", "--prefix", "none", "--format", "{p}"]);
    let tree = tree.folder(&release.workspace.root).output()?;
    let linked: BTreeSet<(&str, &str)> = tree.lines().filter_map(name_and_version).collect();
    let is_linked =
        |package: &&Package| linked.contains(&(package.name.as_str(), package.version.to_string().as_str()));
    let mut packages: Vec<Package> = metadata.packages.iter().filter(is_linked).cloned().collect();
    ensure!(packages.len() == linked.len(), "cargo's tree and its metadata differ");
    packages.sort_by(|one, other| (&one.name, &one.version).cmp(&(&other.name, &other.version)));
    Ok(packages)
}

/// Reads a line of cargo's tree, as in `serde v1.0.0`.
fn name_and_version(line: &str) -> Option<(&str, &str)> {
    let mut words = line.split_whitespace();
    Some((words.next()?, words.next()?.strip_prefix('v')?))
}

/// Lists what each package needs at run time.
fn edges(metadata: &Metadata) -> anyhow::Result<BTreeMap<&PackageId, Vec<&PackageId>>> {
    let graph = metadata.resolve.as_ref().context("cargo resolved nothing")?;
    let edges = graph.nodes.iter().map(|node| {
        let needed = node
            .deps
            .iter()
            .filter(|need| need.dep_kinds.iter().any(|kind| kind.kind == DependencyKind::Normal));
        (&node.id, needed.map(|need| &need.pkg).collect())
    });
    Ok(edges.collect())
}

/// Reads the sum of each package of a registry, by name and version.
fn sums(lock: &str) -> BTreeMap<(String, String), String> {
    let field = |block: &str, name: &str| {
        let line = block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = \""));
        line.map(|rest| rest.trim_end_matches('"').to_owned())
    };
    let entry = |block| Some(((field(block, "name")?, field(block, "version")?), field(block, "checksum")?));
    lock.split("[[package]]").filter_map(entry).collect()
}

fn bill(
    release: &Release<'_>,
    metadata: &Metadata,
    packages: &[Package],
    sums: &BTreeMap<(String, String), String>,
) -> anyhow::Result<Value> {
    let is_ours = |package: &Package| package.source.is_none();
    let names: BTreeMap<&PackageId, String> =
        packages.iter().map(|package| (&package.id, purl(package))).collect();
    let edges = edges(metadata)?;
    let needs = packages.iter().map(|package| {
        let needed = edges.get(&package.id).into_iter().flatten().filter_map(|need| names.get(need));
        json!({ "ref": names[&package.id], "dependsOn": needed.collect::<BTreeSet<_>>() })
    });
    let (program, parts): (Vec<&Package>, Vec<&Package>) =
        packages.iter().partition(|package| is_ours(package) && package.name == "stentor");
    let component = |package: &&Package| component(package, sums);
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": release.date("+%FT%TZ")?,
            "component": program.first().map(|package| application(package)),
        },
        "components": parts.iter().map(component).collect::<Vec<_>>(),
        "dependencies": needs.collect::<Vec<_>>(),
    }))
}

fn application(package: &Package) -> Value {
    let mut application = component(package, &BTreeMap::new());
    application["type"] = "application".into();
    application
}

fn component(package: &Package, sums: &BTreeMap<(String, String), String>) -> Value {
    let key = (package.name.to_string(), package.version.to_string());
    let mut component = json!({
        "type": "library",
        "bom-ref": purl(package),
        "name": package.name,
        "version": package.version,
        "purl": purl(package),
    });
    if let Some(licence) = &package.license {
        // Older manifests separate by a slash what an expression joins by OR.
        component["licenses"] = json!([{ "expression": licence.replace('/', " OR ") }]);
    }
    if let Some(sum) = sums.get(&key) {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": sum }]);
    }
    component
}

/// The package's URL (ECMA-427).
fn purl(package: &Package) -> String {
    format!("pkg:cargo/{}@{}", package.name, package.version.to_string().replace('+', "%2B"))
}

/// Returns the folder of a package's sources.
pub(super) fn folder(package: &Package) -> Option<&Path> {
    package.manifest_path.parent().map(|folder| folder.as_std_path())
}
