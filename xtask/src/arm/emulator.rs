//! Runs a foreign binary with its child processes: the kernel must know the emulator, for the whole machine or in a namespace that ends
//! with the trial.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, ensure};

/// Registers an emulator in a binfmt_misc that only this namespace has, then becomes the program. `F` opens the emulator now.
const PRIVATE: &str = r#"
mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc || exit 125
printf '%s' "$1" > /proc/sys/fs/binfmt_misc/register || exit 125
shift
exec "$@"
"#;
/// Executables for 64-bit ARM: the head of their ELF files, and a mask of its significant bits.
const MAGIC: &str = r"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00";
const MASK: &str = r"\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff";

/// The way in which the binary is started.
pub(super) struct ArmEmulator {
    binary: PathBuf,
    /// The line that registers the emulator; `None` if the machine knows it already.
    rule: Option<String>,
}

impl ArmEmulator {
    /// Finds a way that this machine allows.
    pub(super) fn find(program: &Path, binary: &Path) -> anyhow::Result<Self> {
        let rule = format!(":stentor-arm:M::{MAGIC}:{MASK}:{}:F", program.display());
        for rule in [None, Some(rule)] {
            let emulator = Self { binary: binary.to_owned(), rule };
            if emulator.run(&["--version"]).is_ok_and(|output| output.status.success()) {
                return Ok(emulator);
            }
        }
        let mut alone = Command::new(program);
        alone.arg(binary).arg("--version").env("QEMU_LD_PREFIX", super::SYSTEM);
        let output = alone.output().with_context(|| program.display().to_string())?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{} does not run the binary: {errors}", program.display());
        anyhow::bail!(
            "the binary starts other programs for its processor, and this kernel does not emulate them: that needs binfmt_misc in a \
             user namespace (Linux 6.7 or later, `unshare --user --map-root-user --mount`), or a registration for the whole \
             machine: on Debian `apt-get install -y binfmt-support qemu-user-static`"
        )
    }

    /// Returns a description of the way.
    pub(super) fn description(&self) -> &'static str {
        match self.rule {
            None => "this machine's kernel starts programs for ARM with its emulator",
            Some(_) => "programs for ARM start with the emulator in a namespace that ends with the trial",
        }
    }

    /// Runs the binary to its end.
    pub(super) fn run(&self, arguments: &[&str]) -> anyhow::Result<Output> {
        let mut command = match &self.rule {
            None => Command::new(&self.binary),
            Some(rule) => {
                let mut command = Command::new("unshare");
                command.args(["--user", "--map-root-user", "--mount", "sh", "-c", PRIVATE, "sh", rule]);
                command.arg(&self.binary);
                command
            }
        };
        command.args(arguments).env("QEMU_LD_PREFIX", super::SYSTEM).stdin(Stdio::null());
        Ok(command.output()?)
    }
}
