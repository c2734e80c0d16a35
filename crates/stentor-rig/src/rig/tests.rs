use super::*;

#[test]
fn a_loopback_rig_needs_no_rights_and_says_what_it_cannot_test() {
    let plan = Plan { level: Wanted::Exactly(RigLevel::Loopback), ..Plan::new(Link::open()) };
    let rig = Rig::raise(&plan).unwrap();
    assert_eq!(
        (rig.level(), rig.address(Side::Server)),
        (RigLevel::Loopback, IpAddr::V4(Ipv4Addr::LOCALHOST))
    );
    assert!(!rig.level().cannot_test().is_empty());
    assert!(!rig.end_capture().is_complete);
    let mut command = Command::new("true");
    command.stdin(std::process::Stdio::null());
    assert!(rig.spawn(Side::Device, command).unwrap().wait().unwrap().success());
}
