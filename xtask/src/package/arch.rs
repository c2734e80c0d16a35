//! The processors that a release is made for.

use clap::ValueEnum;

/// A processor of 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Arch {
    /// Intel and AMD
    #[value(name = "x86_64")]
    X86_64,
    /// 64-bit ARM
    Aarch64,
}

impl Arch {
    /// The target of its binaries. Its C library, musl, is linked in whole with its resolver. A statically linked glibc can still load the
    /// modules that /etc/nsswitch.conf names, which must then be of its own version.
    pub(super) const fn target(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64-unknown-linux-musl",
            Self::Aarch64 => "aarch64-unknown-linux-musl",
        }
    }

    /// The name that Debian, Go and container images have for it.
    pub(super) const fn debian(self) -> &'static str {
        match self {
            Self::X86_64 => "amd64",
            Self::Aarch64 => "arm64",
        }
    }

    /// Its number in the head of an ELF file (`e_machine`).
    const fn elf_machine(self) -> u64 {
        match self {
            Self::X86_64 => 62,
            Self::Aarch64 => 183,
        }
    }

    pub(super) fn of_elf_machine(number: u64) -> Option<Self> {
        Self::value_variants().iter().copied().find(|arch| arch.elf_machine() == number)
    }

    /// Returns true if this machine runs its programs without an emulator.
    pub(super) fn is_native(self) -> bool {
        self.target().starts_with(std::env::consts::ARCH)
    }
}
