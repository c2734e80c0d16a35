//! A capture of a link: every packet at both of its ends, with its time and its outcome.

mod pcap;

use crate::anatomy::{self, Anatomy};
use crate::packet::Packet;
use crate::side::Side;
use std::io;
use std::path::Path;

/// The maximum size of a capture, in bytes of packets. Later packets are only counted.
pub const CAPTURE_MAX_BYTES: usize = 512 << 20;

/// All packets between the begin and the end of a capture.
#[derive(Clone, Debug, Default)]
pub struct Capture {
    /// In the order of their times.
    pub packets: Vec<Packet>,
    /// Packets that were not kept, for the capture was full; anything counted from `packets` is then too low.
    pub not_kept: u64,
    /// The offset from a packet's time to the time of day, in nanoseconds.
    pub epoch_ns: u64,
    /// False if packets cannot be captured; `packets` is then empty in every case.
    pub is_complete: bool,
}

impl Capture {
    /// Analyses the packets seen at one end, by exchange and by purpose.
    #[must_use]
    pub fn anatomy(&self, end: Side) -> Anatomy {
        Anatomy::of(self.packets.iter().filter(|packet| packet.at == end))
    }

    /// Lists the times at which packets with data of TCP from one side were seen at an end, in nanoseconds of `CLOCK_MONOTONIC`, in their
    /// order.
    #[must_use]
    pub fn data_times_ns(&self, end: Side, from: Side) -> Vec<u64> {
        let seen = self.packets.iter().filter(|packet| packet.at == end && packet.from == from);
        let mut times: Vec<u64> =
            seen.filter(|packet| anatomy::has_data(&packet.bytes)).map(|packet| packet.time_ns).collect();
        times.sort_unstable();
        times
    }

    /// Writes the packets seen at one end as a pcap file (raw IP, times in nanoseconds).
    pub fn write_pcap(&self, end: Side, file: &Path) -> io::Result<()> {
        let mut out = io::BufWriter::new(std::fs::File::create(file)?);
        pcap::write(&mut out, self.packets.iter().filter(|packet| packet.at == end), self.epoch_ns)
    }

    /// Writes a line for each packet at each end, with its note, as CSV.
    pub fn write_notes(&self, file: &Path) -> io::Result<()> {
        let mut out = io::BufWriter::new(std::fs::File::create(file)?);
        pcap::write_notes(&mut out, &self.packets)
    }
}
