use super::*;

const HALF_A_CORE: CgroupLimits = CgroupLimits { cpu_percent: Some(50), memory_bytes: Some(64 << 20) };

#[test]
fn limits_are_written_as_each_version_of_control_groups_wants_them() {
    let one = vec![("cpu", vec![("cpu.max", "5000 10000".to_owned())])];
    assert_eq!(unified(CgroupLimits { memory_bytes: None, ..HALF_A_CORE }, false), one);
    let [(_, cpu), (_, memory)] = &divided(HALF_A_CORE, false)[..] else { panic!("two controllers") };
    assert_eq!(cpu[1], ("cpu.cfs_quota_us", "5000".to_owned()));
    assert_eq!(memory[0], ("memory.limit_in_bytes", "67108864".to_owned()));
}

#[test]
fn nothing_is_made_without_limits() {
    assert!(matches!(Cgroup::make(CgroupLimits::default()), Ok(None)));
}

#[test]
fn counting_needs_the_controllers_that_count_but_sets_nothing() {
    let names =
        |plan: Vec<GroupSettings>| plan.into_iter().map(|(name, set)| (name, set.len())).collect::<Vec<_>>();
    assert_eq!(names(unified(CgroupLimits::default(), true)), [("cpu", 0), ("memory", 0)]);
    assert_eq!(names(divided(CgroupLimits::default(), true)), [("cpuacct", 0), ("memory", 0)]);
    assert_eq!(names(divided(HALF_A_CORE, true)), [("cpu", 2), ("cpuacct", 0), ("memory", 1)]);
}

#[test]
fn a_controller_that_the_machine_does_not_have_is_named() {
    let root = tempfile::tempdir().unwrap();
    // A plain directory takes the files of the first controller; the second has none.
    fs::create_dir(root.path().join("cpu")).unwrap();
    let refusal = Cgroup::make_below(root.path(), HALF_A_CORE, false).unwrap_err().to_string();
    assert!(refusal.contains("for memory") && refusal.contains("/memory/"), "{refusal}");
    let cpu = CgroupLimits { memory_bytes: None, ..HALF_A_CORE };
    fs::remove_dir_all(root.path().join("cpu")).unwrap();
    fs::create_dir(root.path().join("cpu")).unwrap();
    let group = Cgroup::make_below(root.path(), cpu, false).unwrap().unwrap();
    group.take(7).unwrap();
    let written = |file: &str| fs::read_to_string(group.directories[0].join(file)).unwrap();
    assert_eq!((written("cpu.cfs_quota_us"), written("cgroup.procs")), ("5000".into(), "7".into()));
    group.hold_cpu(None).unwrap();
    assert_eq!(written("cpu.cfs_quota_us"), "-1");
    group.hold_cpu(Some(20)).unwrap();
    assert_eq!(written("cpu.cfs_quota_us"), "2000");
}

#[test]
fn a_group_without_a_limit_cannot_be_held_to_one() {
    let place = tempfile::tempdir().unwrap();
    let group = Cgroup { is_unified: true, directories: vec![place.path().to_owned()] };
    assert_eq!(group.hold_cpu(Some(20)).unwrap_err().kind(), io::ErrorKind::NotFound);
    fs::write(place.path().join("cpu.max"), "2000 10000").unwrap();
    group.hold_cpu(None).unwrap();
    assert_eq!(fs::read_to_string(place.path().join("cpu.max")).unwrap(), "max 10000");
    // An ordinary directory cannot be removed as a group.
    std::mem::forget(group);
}

#[test]
fn what_was_used_is_read_from_either_version() {
    let place = tempfile::tempdir().unwrap();
    let group = Cgroup { is_unified: true, directories: vec![place.path().to_owned()] };
    fs::write(place.path().join("cpu.stat"), "usage_usec 1500\nuser_usec 1000\n").unwrap();
    fs::write(place.path().join("memory.peak"), "4096\n").unwrap();
    assert_eq!(
        group.usage().unwrap(),
        Usage { cpu_ns: 1_500_000, memory_peak_bytes: 4096, source: UsageSource::Cgroup }
    );
    fs::write(place.path().join("cpuacct.usage"), "77\n").unwrap();
    assert_eq!(group.usage().unwrap().cpu_ns, 77);
    // An ordinary directory cannot be removed as a group.
    std::mem::forget(group);
}

#[test]
fn groups_of_dead_processes_are_swept_away_and_others_stay() {
    let place = tempfile::tempdir().unwrap();
    let names =
        [format!("{PREFIX}4294967294-0"), format!("{PREFIX}{}-0", std::process::id()), "else-1-0".to_owned()];
    names.iter().for_each(|name| fs::create_dir(place.path().join(name)).unwrap());
    sweep(place.path());
    assert_eq!(names.map(|name| place.path().join(name).exists()), [false, true, true]);
}
