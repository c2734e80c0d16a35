//! The clock errors that both halves of an exchange would see if they queried a time server as in albertengo-2020. Both read the same
//! clock, so every offset found is an error of the method.

use super::Drifting;
use super::estimate::{by_shortest, papers_mean_ns};
use super::sntp::{self, Stamps};
use crate::probe;
use crate::rig::Rig;
use crate::side::Side;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Queries of each half, as in the paper.
pub const QUERIES: u32 = 100;
/// The port of the time server, which runs beside the server, or at the meeting point of both halves' links.
const TIME_PORT: u16 = 123;

/// The errors of a one-way delay measured with clocks that were set by queries, in nanoseconds; positive if it is too long.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClockErrors {
    /// The error with the mean of all queries, in whole milliseconds.
    pub papers_mean_ns: f64,
    /// The error with the queries of the shortest round trips.
    pub shortest_ns: f64,
    /// The error bound of `shortest_ns`, as both halves can determine it themselves.
    pub shortest_bound_ns: f64,
}

/// Queries the time server from the device and the server of a rig, or from the server of the rig behind it.
pub fn inquire(rig: &Rig, behind: Option<&Rig>) -> io::Result<ClockErrors> {
    let here = SocketAddr::from((Ipv4Addr::UNSPECIFIED, TIME_PORT));
    let socket = probe::join(rig.within(Side::Server, move || UdpSocket::bind(here))?)?;
    let stop = Arc::new(AtomicBool::new(false));
    let stop_signal = Arc::clone(&stop);
    let answering =
        rig.within(Side::Server, move || sntp::serve(&socket, Drifting::default(), &stop_signal))?;
    let device = ask(rig, Side::Device, SocketAddr::new(rig.address(Side::Server), TIME_PORT));
    let (place, seen) = behind.map_or((rig, Side::Server), |behind| (behind, Side::Device));
    let server = ask(place, Side::Server, SocketAddr::new(place.address(seen), TIME_PORT));
    stop.store(true, Ordering::Relaxed);
    probe::join(answering)?;
    errors(&device?, &server?).ok_or_else(|| io::Error::other("the time server was never queried"))
}

fn ask(rig: &Rig, side: Side, time_server: SocketAddr) -> io::Result<Vec<Stamps>> {
    probe::join(rig.within(side, move || {
        let socket = UdpSocket::bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)))?;
        (0..QUERIES).map(|_| sntp::ask(&socket, time_server, Drifting::default())).collect()
    })?)
}

/// Computes the errors of the time server's offsets from each clock. Both true offsets are zero.
fn errors(device: &[Stamps], server: &[Stamps]) -> Option<ClockErrors> {
    let (near, far) = (by_shortest(device)?, by_shortest(server)?);
    Some(ClockErrors {
        papers_mean_ns: papers_mean_ns(server)? - papers_mean_ns(device)?,
        shortest_ns: far.offset_ns - near.offset_ns,
        shortest_bound_ns: near.bound_ns + far.bound_ns,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_back_that_is_slower_at_the_device_makes_one_way_delays_too_long_by_half_of_it() {
        // Up 2 ms, down 8 ms at the device; the server stands beside the time server.
        let stamps = |up_ns, down_ns| Stamps {
            asked_ns: 0,
            received_ns: up_ns,
            answered_ns: up_ns,
            known_ns: up_ns + down_ns,
        };
        let (device, server) = (vec![stamps(2_000_000, 8_000_000); 9], vec![stamps(0, 0); 9]);
        let found = errors(&device, &server).expect("asked");
        let expected = ClockErrors {
            papers_mean_ns: 3_000_000.0,
            shortest_ns: 3_000_000.0,
            shortest_bound_ns: 5_000_000.0,
        };
        assert_eq!(found, expected);
        assert_eq!(errors(&[], &server), None);
    }
}
