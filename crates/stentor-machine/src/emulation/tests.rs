use super::*;

/// The file on a PC, and in qemu-user before 8.2 on a PC.
const PC: &str =
    "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Some processor\nflags\t\t: fpu vme de\n";
/// The file on a Raspberry Pi 4 and, without its last lines, in qemu-user since 8.2 on any host.
const PI: &str = "processor\t: 0\nBogoMIPS\t: 108.00\nFeatures\t: fp asimd evtstrm crc32 cpuid\n\
                  CPU implementer\t: 0x41\nCPU architecture: 8\n\nModel\t\t: Raspberry Pi 4 Model B Rev 1.4\n";
const PC_CLOCKS: &str = "kvm-clock tsc acpi_pm \n";
const PI_CLOCKS: &str = "arch_sys_counter \n";

fn facts(kernel: &str, cpuinfo: &str, clocks: &str) -> ProcessorFacts {
    ProcessorFacts { kernel: kernel.into(), cpuinfo: cpuinfo.into(), clocks: clocks.into() }
}

#[test]
fn a_raspberry_pi_and_a_pc_are_not_emulated() {
    for kernel in ["aarch64\n", ""] {
        assert_eq!(facts(kernel, PI, PI_CLOCKS).emulates("aarch64"), None);
    }
    assert_eq!(facts("aarch64\n", PI, PI_CLOCKS).emulates("arm"), None, "32 bits on a kernel of 64");
    assert_eq!(facts("armv7l\n", PI, "timer").emulates("arm"), None);
    for kernel in ["x86_64\n", ""] {
        assert_eq!(facts(kernel, PC, PC_CLOCKS).emulates("x86_64"), None);
    }
    assert_eq!(facts("x86_64\n", PC, PC_CLOCKS).emulates("x86"), None, "32 bits on a kernel of 64");
}

#[test]
fn a_program_for_arm_on_the_kernel_of_a_pc_is_emulated_whatever_cpuinfo_is_made_to_say() {
    for cpuinfo in [PC, PI, ""] {
        let why = facts("x86_64\n", cpuinfo, "").emulates("aarch64").expect("emulated");
        assert!(why.contains("/proc/sys/kernel/arch says x86_64"), "{why}");
    }
    assert!(facts("riscv64\n", "", "").emulates("aarch64").is_some());
}

#[test]
fn on_an_older_kernel_cpuinfo_or_the_clocks_tell() {
    let why = facts("", PC, "").emulates("aarch64").expect("emulated");
    assert!(why.contains("/proc/cpuinfo has vendor_id"), "{why}");
    let why = facts("", PI, PC_CLOCKS).emulates("aarch64").expect("emulated");
    assert!(why.contains("the clock tsc"), "{why}");
}

#[test]
fn a_program_for_a_pc_on_a_raspberry_pi_is_emulated_too() {
    assert!(facts("aarch64\n", "", "").emulates("x86_64").is_some());
    assert!(facts("", PI, "").emulates("x86_64").is_some());
    assert!(facts("", PC, PI_CLOCKS).emulates("x86_64").is_some());
}

#[test]
fn where_nothing_is_told_nothing_is_claimed() {
    assert_eq!(ProcessorFacts::default().emulates("aarch64"), None);
    assert_eq!(facts("x86_64\n", PC, PC_CLOCKS).emulates("riscv64"), None, "a kind that is not known here");
    assert_eq!(facts("", "model name : a vendor_id of flags", "").emulates("aarch64"), None);
}
