//! The two calls of the kernel that have no safe wrapper, and nothing else.
#![expect(
    unsafe_code,
    reason = "unshare and the ioctl of TUN devices have no safe wrapper: see SAFETY at each"
)]

use rustix::ioctl::{Setter, ioctl, opcode};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use std::fs::File;
use std::io;

/// `IFF_TUN | IFF_NO_PI`: packets from the IP header on, with nothing before it.
const TUN_WITHOUT_HEADER: u16 = 0x1001;
const NAME_BYTES: usize = 16;

/// `struct ifreq`, of which the kernel reads the name and the flags.
#[repr(C)]
struct InterfaceRequest {
    name: [u8; NAME_BYTES],
    flags: u16,
    rest: [u8; 22],
}

/// Moves the calling thread to a new network namespace; threads and processes that it starts begin there.
pub(crate) fn leave_network() -> io::Result<()> {
    // SAFETY: only unsharing the table of file descriptors is unsafe, and that is not requested.
    Ok(unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?)
}

/// Puts processes that the calling thread starts from now on a time namespace of their own.
pub(crate) fn leave_time() -> io::Result<()> {
    // SAFETY: only unsharing the table of file descriptors is unsafe, and that is not requested.
    Ok(unsafe { unshare_unsafe(UnshareFlags::NEWTIME) }?)
}

/// Lets the calling thread run before every ordinary one; fails without the right to.
pub(crate) fn run_first() -> io::Result<()> {
    // SAFETY: all fields are numbers, of which musl has more than glibc, and zero is a value of each.
    let mut lowest_of_the_first: libc::sched_param = unsafe { std::mem::zeroed() };
    lowest_of_the_first.sched_priority = 1;
    // SAFETY: the kernel reads the parameters, which live to the end of the call; 0 is the calling thread.
    match unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const lowest_of_the_first) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Turns an open `/dev/net/tun` into a TUN device of this name in the calling thread's namespace. The device is removed when the file is
/// closed.
pub(crate) fn attach_tun(file: &File, name: &str) -> io::Result<()> {
    /// `TUNSETIFF`.
    const ATTACH: rustix::ioctl::Opcode = opcode::write::<i32>(b'T', 202);
    let mut request = InterfaceRequest { name: [0; NAME_BYTES], flags: TUN_WITHOUT_HEADER, rest: [0; 22] };
    let fits = name.bytes().take(NAME_BYTES - 1);
    request.name.iter_mut().zip(fits).for_each(|(place, byte)| *place = byte);
    // SAFETY: TUNSETIFF reads a `struct ifreq` of 40 bytes, which this is, and writes the name into it at most.
    Ok(unsafe { ioctl(file, Setter::<ATTACH, InterfaceRequest>::new(request)) }?)
}
