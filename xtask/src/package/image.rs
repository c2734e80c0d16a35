//! Images of containers in OCI's form, from scratch: the server's, and one with the emulators alone for tests. No daemon is needed.
//!
//! Shapes: OCI Image Layout, Image Manifest and Image Configuration, version 1.0. The health check is Docker's addition to the last one.

use std::path::{Path, PathBuf};

use anyhow::ensure;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::binary::StaticBinary;
use super::tool::{self, Tool};
use super::{PackedFile, Release, judges};

/// The user of the server, whom nothing outside knows.
const USER: &str = "65532";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
/// Base64 letters of a line in PEM (RFC 7468).
const PEM_LINE: usize = 64;
/// The largest image of the emulators, packed: a test downloads it.
const EMULATORS_MAX_BYTES: u64 = 20_000_000;

/// An image: its name, and the settings of its container.
struct Image {
    name: &'static str,
    title: &'static str,
    settings: Value,
}

/// Makes the images of a binary.
pub(super) fn write(
    release: &Release<'_>,
    binary: &StaticBinary,
    licences: &PackedFile,
) -> anyhow::Result<Vec<PackedFile>> {
    let root = root(release, binary, licences)?;
    let layer = layer(release, &root)?;
    let images = [server(), emulators()];
    images.iter().map(|image| pack(release, binary, image, &layer)).collect()
}

fn server() -> Image {
    let settings = json!({
        "User": format!("{USER}:{USER}"),
        "ExposedPorts": { "8686/tcp": {} },
        "Env": ["PATH=/", "STENTOR__DATA_DIR=/data", "STENTOR__API__LISTEN=0.0.0.0:8686"],
        "Entrypoint": ["/stentor"],
        "Cmd": ["serve"],
        "Volumes": { "/data": {} },
        "WorkingDir": "/data",
        "StopSignal": "SIGTERM",
        "Healthcheck": {
            "Test": ["CMD", "/stentor", "ready"],
            "Interval": 10_000_000_000_u64,
            "Timeout": 5_000_000_000_u64,
            "StartPeriod": 60_000_000_000_u64,
        },
    });
    Image { name: "stentor", title: "Stentor", settings }
}

/// The container's command chooses the emulator, as in `fcm --listen 0.0.0.0:8080`.
fn emulators() -> Image {
    let settings = json!({
        "User": format!("{USER}:{USER}"),
        "Env": ["PATH=/"],
        "Entrypoint": ["/stentor", "emulate"],
        "Cmd": ["--help"],
        "WorkingDir": "/data",
        "StopSignal": "SIGTERM",
    });
    Image { name: "stentor-emulators", title: "Emulators of push services", settings }
}

/// Fills the root folder of both images.
fn root(release: &Release<'_>, binary: &StaticBinary, licences: &PackedFile) -> anyhow::Result<PathBuf> {
    let root = tool::empty(release.scratch.join(format!("root-{}", binary.arch.debian())))?;
    tool::copy(&binary.file.path, &root.join("stentor"))?;
    tool::copy(&licences.path, &root.join("usr/share/doc/stentor/licences.txt"))?;
    tool::copy(&release.workspace.root.join("LICENSE"), &root.join("usr/share/doc/stentor/LICENSE"))?;
    for folder in ["data", "tmp", "etc/ssl/certs"] {
        std::fs::create_dir_all(root.join(folder))?;
    }
    std::fs::write(root.join("etc/ssl/certs/ca-certificates.crt"), authorities())?;
    std::fs::write(root.join("etc/passwd"), format!("stentor:x:{USER}:{USER}::/data:/\n"))?;
    std::fs::write(root.join("etc/group"), format!("stentor:x:{USER}:\n"))?;
    // Not every runtime writes one, and without it even localhost has no address.
    std::fs::write(root.join("etc/hosts"), "127.0.0.1 localhost\n::1 localhost\n")?;
    Ok(root)
}

/// The authorities that Mozilla trusts, in PEM. Cargo.lock holds their version, so that they do not depend on this machine.
fn authorities() -> String {
    webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().map(|certificate| pem(certificate)).collect()
}

fn pem(certificate: &[u8]) -> String {
    let text = STANDARD.encode(certificate);
    let lines: Vec<_> = text.as_bytes().chunks(PEM_LINE).map(String::from_utf8_lossy).collect();
    format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
}

/// A packed layer, with the sum of its tar.
struct Layer {
    packed: PathBuf,
    tar_sha256: String,
}

fn layer(release: &Release<'_>, root: &Path) -> anyhow::Result<Layer> {
    let tar = root.with_extension("tar");
    let file = format!("--file={}", tar.display());
    let add = |operation: &str, owner: &str, mode: &str, paths: &[&str]| {
        let mut add = release.tar();
        add.args([operation, &file, &format!("--owner={owner}"), &format!("--group={owner}")]);
        add.args([&format!("--mode={mode}")]).args(paths).folder(root).output()
    };
    add("--create", "0", "u=rwX,go=rX", &["etc", "stentor", "usr"])?;
    add("--append", "0", "1777", &["tmp"])?;
    add("--append", USER, "0700", &["data"])?;
    let tar_sha256 = tool::sha256(&tar)?;
    Tool::new("gzip", "gzip").args(["--no-name", "--best", "--force"]).args([&tar]).output()?;
    Ok(Layer { packed: root.with_extension("tar.gz"), tar_sha256 })
}

/// Writes the archive of one image.
fn pack(
    release: &Release<'_>,
    binary: &StaticBinary,
    image: &Image,
    layer: &Layer,
) -> anyhow::Result<PackedFile> {
    let name = format!("{}-{}-linux-{}.oci", image.name, release.version, binary.arch.debian());
    let layout = Layout { folder: tool::empty(release.scratch.join(&name))? };
    let packed = layout.add_file(LAYER, &layer.packed)?;
    let bytes = packed["size"].as_u64().unwrap_or_default();
    let is_small = image.name == "stentor" || bytes <= EMULATORS_MAX_BYTES;
    ensure!(is_small, "{name} has {bytes} bytes of {EMULATORS_MAX_BYTES}");
    let config = layout.add(CONFIG, &config(release, binary, image, layer)?)?;
    let manifest = json!({ "schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [packed] });
    let mut manifest = layout.add(MANIFEST, &manifest)?;
    manifest["annotations"] = json!({ "org.opencontainers.image.ref.name": release.version });
    layout.write("index.json", &json!({ "schemaVersion": 2, "manifests": [manifest] }))?;
    layout.write("oci-layout", &json!({ "imageLayoutVersion": "1.0.0" }))?;
    let path = release.folder.join(format!("{name}.tar"));
    let mut tar = release.tar();
    tar.args(["--create", &format!("--file={}", path.display()), "--owner=0", "--group=0"]);
    tar.args(["--mode=u=rwX,go=rX", "blobs", "index.json", "oci-layout"]).folder(&layout.folder).output()?;
    let checked_by = judges::image(release, binary.arch, image.name, &path)?;
    Ok(PackedFile { path, checked_by })
}

fn config(
    release: &Release<'_>,
    binary: &StaticBinary,
    image: &Image,
    layer: &Layer,
) -> anyhow::Result<Value> {
    let created = release.date("+%FT%TZ")?;
    let mut settings = image.settings.clone();
    settings["Labels"] = json!({
        "org.opencontainers.image.title": image.title,
        "org.opencontainers.image.version": release.version,
        "org.opencontainers.image.licenses": "Apache-2.0",
    });
    Ok(json!({
        "created": created,
        "architecture": binary.arch.debian(),
        "os": "linux",
        "config": settings,
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{}", layer.tar_sha256)] },
        "history": [{ "created": created, "created_by": "cargo xtask package" }],
    }))
}

/// The folder of an image.
struct Layout {
    folder: PathBuf,
}

impl Layout {
    fn write(&self, name: &str, value: &Value) -> anyhow::Result<()> {
        Ok(std::fs::write(self.folder.join(name), value.to_string())?)
    }

    /// Adds a document, and returns its descriptor.
    fn add(&self, media_type: &str, document: &Value) -> anyhow::Result<Value> {
        let file = self.folder.join("document");
        std::fs::write(&file, document.to_string())?;
        let descriptor = self.add_file(media_type, &file)?;
        std::fs::remove_file(file)?;
        Ok(descriptor)
    }

    fn add_file(&self, media_type: &str, file: &Path) -> anyhow::Result<Value> {
        let sum = tool::sha256(file)?;
        tool::copy(file, &self.folder.join("blobs/sha256").join(&sum))?;
        let size = std::fs::metadata(file)?.len();
        Ok(json!({ "mediaType": media_type, "digest": format!("sha256:{sum}"), "size": size }))
    }
}
