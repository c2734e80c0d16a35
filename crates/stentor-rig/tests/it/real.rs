use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use stentor_rig::link::{Path, Rate};
use stentor_rig::packet::Note;
use stentor_rig::{CgroupLimits, Link, Plan, Rig, RigLevel, Side, Wanted};

const PORT: u16 = 7777;
const WAY_NS: u64 = 15_000_000;

/// Raises a rig at its best level, or reports the reason why not.
fn rig(plan: Plan) -> Option<Rig> {
    match Rig::raise(&Plan { level: Wanted::Exactly(RigLevel::Netns), ..plan }) {
        Ok(rig) => Some(rig),
        Err(refusal) => {
            skip(&refusal.to_string());
            None
        }
    }
}

/// Reports a skipped test on the standard error stream, or fails where `STENTOR_TEST_REQUIRE` lists `rig`.
fn skip(why: &str) {
    let required = std::env::var("STENTOR_TEST_REQUIRE").unwrap_or_default();
    assert!(
        !required.split(',').any(|word| word == "rig"),
        "{why} (STENTOR_TEST_REQUIRE does not allow to skip it)"
    );
    let thread = std::thread::current();
    // A test's own output is held back when it passes. A failure to write the notice is ignored.
    let _ = writeln!(std::io::stderr(), "skipped: {}, {why}", thread.name().unwrap_or("a test"));
}

fn slow() -> Link {
    let path = Path { delay_ns: WAY_NS, rate: Rate::BitsPerSecond(8_000_000), ..Path::open() };
    Link { name: "slow".to_owned(), up: path.clone(), down: path, source: "a test".to_owned() }
}

/// An echo server for one connection.
fn echo(rig: &Rig) -> JoinHandle<()> {
    let address = SocketAddr::new(rig.address(Side::Server), PORT);
    let listener =
        rig.within(Side::Server, move || TcpListener::bind(address).unwrap()).unwrap().join().unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut buffer = [0; 4096];
        while let Ok(length @ 1..) = stream.read(&mut buffer) {
            stream.write_all(&buffer[..length]).unwrap();
        }
    })
}

/// Sends bytes once and waits for all of them to return. Returns the time taken.
fn ask(rig: &Rig, bytes: usize) -> Duration {
    let address = SocketAddr::new(rig.address(Side::Server), PORT);
    let work = move || {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        let started = Instant::now();
        stream.write_all(&vec![7; bytes]).unwrap();
        stream.read_exact(&mut vec![0; bytes]).unwrap();
        started.elapsed()
    };
    rig.within(Side::Device, work).unwrap().join().unwrap()
}

#[test]
fn a_round_trip_takes_as_long_as_the_link_says_and_every_byte_is_counted() {
    let Some(rig) = rig(Plan::new(slow())) else { return };
    let server = echo(&rig);
    rig.begin_capture();
    let took = ask(&rig, 100);
    server.join().unwrap();
    assert!(took >= Duration::from_nanos(2 * WAY_NS), "{took:?}");
    assert!(rig.settle(Duration::from_millis(40), Duration::from_secs(5)), "{:?}", rig.traffic(Side::Server));
    let capture = rig.end_capture();
    for side in Side::BOTH {
        let counted = rig.counters(side).unwrap();
        let seen = |from: Side| {
            let packets = capture.packets.iter().filter(|packet| packet.at == side && packet.from == from);
            packets.fold((0, 0), |(packets, bytes), packet| (packets + 1, bytes + packet.bytes.len() as u64))
        };
        assert_eq!((counted.sent_packets, counted.sent_bytes), seen(side));
        assert_eq!((counted.received_packets, counted.received_bytes), seen(side.other()));
    }
    assert!(capture.is_complete && capture.packets.iter().all(|packet| packet.bytes.len() <= 1500));
    assert!(!capture.packets.iter().any(|packet| matches!(packet.note, Note::Lost | Note::Overflowed)));
    assert!(rig.lateness().packets > 0);
}

#[test]
fn a_link_behind_another_is_met_only_by_what_goes_on_to_a_third_namespace() {
    let Some(front) = rig(Plan::new(Link::open())) else { return };
    let behind = Rig::raise_behind(&Plan::new(slow()), &front).unwrap();
    let (near, far) = (echo(&front), echo(&behind));
    let took = ask(&front, 100);
    assert!(took < Duration::from_nanos(WAY_NS), "nothing of the slow link: {took:?}");
    let took = ask(&behind, 100);
    assert!(took >= Duration::from_nanos(2 * WAY_NS), "{took:?}");
    near.join().unwrap();
    far.join().unwrap();
    assert!(front.traffic(Side::Device).sent_packets > 0 && behind.traffic(Side::Device).sent_packets > 0);
}

#[test]
fn a_late_engine_is_noticed() {
    let Some(rig) = rig(Plan::new(slow())) else { return };
    let server = echo(&rig);
    rig.hinder(Duration::from_millis(40));
    ask(&rig, 100);
    server.join().unwrap();
    let complaint = rig.lateness().complaint(stentor_rig::lateness::LatenessLimits::default());
    assert!(complaint.is_some(), "{:?}", rig.lateness());
}

#[test]
fn what_runs_on_a_side_is_counted_and_nothing_is_left_behind() {
    let limits = CgroupLimits { cpu_percent: Some(50), memory_bytes: Some(64 << 20) };
    let Some(rig) = rig(Plan { device: limits, ..Plan::new(Link::open()) }) else { return };
    let mut command = Command::new("sh");
    command.args(["-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; cat /proc/self/net/dev"]);
    command.stdout(Stdio::piped());
    let output = rig.spawn(Side::Device, command).unwrap().wait_with_output().unwrap();
    let interfaces = String::from_utf8(output.stdout).unwrap();
    assert!(interfaces.contains("stentor0") && !interfaces.contains("eth0"), "{interfaces}");
    let usage = rig.usage(Side::Device).unwrap();
    assert!(usage.cpu_ns > 1_000_000 && usage.memory_peak_bytes > 0, "{usage:?}");
    assert!(usage.memory_peak_bytes <= 64 << 20, "{usage:?}");
    // A process left running is ended with the rig.
    let mut idle = rig.spawn(Side::Device, {
        let mut command = Command::new("sleep");
        command.arg("1000");
        command
    });
    let groups = groups_of(idle.as_ref().unwrap().id());
    assert!(!groups.is_empty() && groups.iter().all(|group| group.exists()), "{groups:?}");
    drop(rig);
    assert!(!idle.as_mut().unwrap().wait().unwrap().success());
    assert!(groups.iter().all(|group| !group.exists()), "{groups:?}");
}

#[test]
fn a_process_can_live_ahead_of_our_clock() {
    let Some(rig) = rig(Plan::new(Link::open())) else { return };
    let mut offsets = Command::new("cat");
    offsets.arg("/proc/self/timens_offsets").stdout(Stdio::piped());
    let child = match rig.spawn_with_offset(Side::Server, -1_500_000_000, offsets) {
        Err(refusal) => return skip(&format!("no time namespace: {refusal}")),
        Ok(child) => child,
    };
    let text = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    let line = text.lines().find(|line| line.starts_with("monotonic")).unwrap();
    let fields: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(fields, ["monotonic", "-2", "500000000"]);
}

/// Returns the directories of our control groups that a process is in.
fn groups_of(process: u32) -> Vec<PathBuf> {
    let table = std::fs::read_to_string(format!("/proc/{process}/cgroup")).unwrap();
    let ours = table.lines().filter(|line| line.contains("/stentor-lab-"));
    let split = ours.filter_map(|line| line.split_once(':')?.1.split_once(':'));
    split.map(|(controllers, path)| PathBuf::from(format!("/sys/fs/cgroup/{controllers}{path}"))).collect()
}

#[test]
fn every_byte_is_counted_as_others_count_it_and_a_late_engine_makes_a_run_invalid() {
    if rig(Plan::new(Link::open())).is_none() {
        return;
    }
    for step in stentor_rig::selftest::STEPS.iter().filter(|step| ["bytes", "lateness"].contains(&step.name))
    {
        let outcome = step.make(1).unwrap();
        let failed: Vec<_> = outcome.checks.iter().filter(|check| !check.ok).collect();
        assert!(failed.is_empty() && !outcome.checks.is_empty(), "{failed:?}");
    }
}
