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
fn the_archive_has_each_client_with_its_generated_half() {
    let tracked = ["README.md", "clients/python/README.md", "clients/python-device/README.md"];
    let files = archive::client_files(&tracked.map(str::to_owned));
    assert_eq!(files[0], "clients/python/README.md");
    assert!(files.contains(&"clients/typescript/src/types.ts".to_owned()) && files.len() == 5, "{files:?}");
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    archive::copy(from.path(), &files, to.path()).unwrap_err();
    std::fs::create_dir_all(from.path().join("clients/python")).unwrap();
    std::fs::write(from.path().join(&files[0]), "one").unwrap();
    archive::copy(from.path(), &files[..1], to.path()).unwrap();
    assert_eq!(std::fs::read_to_string(to.path().join(&files[0])).unwrap(), "one");
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
