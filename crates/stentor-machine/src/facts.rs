//! Facts of the system from its files; missing ones are empty.

/// Returns a file's first line.
#[must_use]
pub fn line(path: &str) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().next().unwrap_or_default().to_owned()
}

/// Returns the value of a name in a file of names and values.
#[must_use]
pub fn fact(path: &str, name: &str) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap_or_default().trim_start_matches([':', ' ', '\t']).to_owned()
}

/// Returns the name of the processor, or of the board if the kernel names only that.
#[must_use]
pub fn processor() -> String {
    let name = fact("/proc/cpuinfo", "model name");
    if name.is_empty() { fact("/proc/cpuinfo", "Model") } else { name }
}
