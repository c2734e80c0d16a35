//! The run-time requirements of an executable, read from its ELF headers (System V ABI, "Object Files" and "Program Loading").

use anyhow::{Context, ensure};

/// Program header types: the dynamic section, and the path of an interpreter.
const PT_DYNAMIC: u32 = 2;
const PT_INTERP: u32 = 3;
/// Tags of the dynamic section: its end, and a shared library by name.
const DT_NULL: u64 = 0;
const DT_NEEDED: u64 = 1;
/// Magic number, 64 bits, little-endian: the only kind of released executables.
const IDENTITY: &[u8] = b"\x7fELF\x02\x01";
const DYNAMIC_ENTRY_BYTES: usize = 16;

/// Returns the number of the processor (`e_machine`) that an executable is made for.
pub(super) fn machine(file: &[u8]) -> anyhow::Result<u64> {
    number(file, 0x12, 2)
}

/// Lists the run-time requirements of a 64-bit little-endian executable; none if it is static.
pub(super) fn needs(file: &[u8]) -> anyhow::Result<Vec<String>> {
    ensure!(file.starts_with(IDENTITY), "not a 64-bit little-endian ELF file");
    let headers = place(number(file, 0x20, 8)?)?;
    let size = place(number(file, 0x36, 2)?)?;
    let count = place(number(file, 0x38, 2)?)?;
    ensure!(count > 0, "no program headers");
    let mut needs = Vec::new();
    for index in 0..count {
        let at = headers.saturating_add(index * size);
        let (start, length) = (place(number(file, at + 0x08, 8)?)?, place(number(file, at + 0x20, 8)?)?);
        let segment = || file.get(start..start.saturating_add(length)).context("a segment lies outside");
        match u32::try_from(number(file, at, 4)?)? {
            PT_INTERP => needs.push(format!("the interpreter {}", text(segment()?))),
            PT_DYNAMIC => needs.extend(libraries(segment()?)?),
            _ => {}
        }
    }
    Ok(needs)
}

/// Lists the shared libraries of a dynamic section; a static executable may have the section, but names none.
fn libraries(dynamic: &[u8]) -> anyhow::Result<Vec<String>> {
    let mut libraries = Vec::new();
    for at in (0..dynamic.len()).step_by(DYNAMIC_ENTRY_BYTES) {
        match number(dynamic, at, 8)? {
            DT_NULL => break,
            DT_NEEDED => {
                libraries.push(format!("a shared library (name at {})", number(dynamic, at + 8, 8)?))
            }
            _ => {}
        }
    }
    Ok(libraries)
}

fn number(file: &[u8], at: usize, bytes: usize) -> anyhow::Result<u64> {
    let field = file.get(at..at.saturating_add(bytes)).context("the file ends too early")?;
    Ok(field.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

fn place(number: u64) -> anyhow::Result<usize> {
    usize::try_from(number).context("an offset is too large")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned()
}
