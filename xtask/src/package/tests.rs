use super::*;

/// An executable with one program header of a kind, followed by its segment.
fn executable(kind: u32, segment: &[u8]) -> Vec<u8> {
    let mut file = vec![0; 0x40 + 0x38];
    file[..6].copy_from_slice(b"\x7fELF\x02\x01");
    file[0x20] = 0x40;
    file[0x36] = 0x38;
    file[0x38] = 1;
    file[0x40..0x44].copy_from_slice(&kind.to_le_bytes());
    let start = file.len() as u64;
    file[0x48..0x50].copy_from_slice(&start.to_le_bytes());
    file[0x60..0x68].copy_from_slice(&(segment.len() as u64).to_le_bytes());
    file.extend_from_slice(segment);
    file
}

fn dynamic(entries: &[(u64, u64)]) -> Vec<u8> {
    let words = entries.iter().flat_map(|(tag, value)| [tag.to_le_bytes(), value.to_le_bytes()]);
    executable(2, &words.flatten().collect::<Vec<u8>>())
}

#[test]
fn the_report_has_a_sum_of_each_file_and_its_judges() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("one");
    std::fs::write(&path, "one").unwrap();
    let files = [PackedFile { path, checked_by: vec!["elf"] }];
    let sums = sums(&files).unwrap();
    let sha256 = "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed";
    assert_eq!(lines(&sums), format!("{sha256}  one\n"));
    let entry = &report(&sums)["files"][0];
    assert_eq!((&entry["bytes"], &entry["sha256"]), (&json!(3), &json!(sha256)));
    assert_eq!(entry["checked_by"], json!(["elf"]));
    assert!(table(&sums).contains("checked by elf"));
}

#[test]
fn an_empty_file_is_no_release() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("empty");
    std::fs::write(&path, "").unwrap();
    assert!(sums(&[PackedFile { path, checked_by: Vec::new() }]).is_err());
}

#[test]
fn the_processor_of_an_executable_is_known() {
    let mut file = executable(3, b"/lib/ld\0");
    file[0x12] = 183;
    assert_eq!(elf::machine(&file).ok().and_then(Arch::of_elf_machine), Some(Arch::Aarch64));
    file[0x12] = 40;
    assert_eq!(elf::machine(&file).ok().and_then(Arch::of_elf_machine), None);
}

#[test]
fn an_interpreter_is_a_need() {
    let needs = elf::needs(&executable(3, b"/lib64/ld-linux-x86-64.so.2\0")).unwrap();
    assert_eq!(needs, ["the interpreter /lib64/ld-linux-x86-64.so.2"]);
}

#[test]
fn a_shared_library_is_a_need_and_a_dynamic_section_without_one_is_not() {
    assert_eq!(elf::needs(&dynamic(&[(5, 9), (1, 17), (0, 0)])).unwrap().len(), 1);
    assert!(elf::needs(&dynamic(&[(5, 9), (0, 0), (1, 17)])).unwrap().is_empty());
}

#[test]
fn a_file_that_ends_too_early_is_refused() {
    let whole = executable(3, b"/lib/ld\0");
    for length in [0, 5, 0x30, 0x60, whole.len() - 1] {
        assert!(elf::needs(&whole[..length]).is_err(), "{length} bytes");
    }
}

#[test]
fn the_program_that_runs_this_test_needs_the_systems_library() {
    let this = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    assert_eq!(elf::needs(&this).unwrap().is_empty(), cfg!(target_feature = "crt-static"));
}
