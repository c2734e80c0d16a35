//! The pcap file format, and the notes that it has no place for.

use crate::packet::{Note, Packet};
use std::io::{self, Write};

/// The magic number of captures with times in nanoseconds.
const MAGIC: u32 = 0xa1b2_3c4d;
/// Packets begin with their IP header.
const RAW_IP: u32 = 101;
const SNAP_BYTES: u32 = 65_535;
const SECOND_NS: u64 = 1_000_000_000;

/// Writes a file with these packets.
pub(super) fn write<'a>(
    out: &mut impl Write,
    packets: impl Iterator<Item = &'a Packet>,
    epoch_ns: u64,
) -> io::Result<()> {
    out.write_all(&MAGIC.to_le_bytes())?;
    // Version 2.4.
    out.write_all(&[2, 0, 4, 0])?;
    // Times are in UTC, their accuracy is not stated.
    out.write_all(&[0; 8])?;
    out.write_all(&SNAP_BYTES.to_le_bytes())?;
    out.write_all(&RAW_IP.to_le_bytes())?;
    for packet in packets {
        let time_ns = packet.time_ns + epoch_ns;
        let captured_bytes = packet.bytes.len().min(SNAP_BYTES as usize);
        let header =
            [time_ns / SECOND_NS, time_ns % SECOND_NS, captured_bytes as u64, packet.bytes.len() as u64];
        for field in header {
            // Seconds overflow in 2106, as the format does.
            out.write_all(&(field as u32).to_le_bytes())?;
        }
        out.write_all(&packet.bytes[..captured_bytes])?;
    }
    out.flush()
}

/// Writes the notes of all packets, one a line.
pub(super) fn write_notes(out: &mut impl Write, packets: &[Packet]) -> io::Result<()> {
    writeln!(out, "time_ns,end,from,bytes,fate,queued_ns,late_ns")?;
    for packet in packets {
        let (outcome, queued, late) = match packet.note {
            Note::Sent { queued_ns } => ("sent", queued_ns.to_string(), String::new()),
            Note::Lost => ("lost", String::new(), String::new()),
            Note::Overflowed => ("overflowed", String::new(), String::new()),
            Note::Received { late_ns } => ("received", String::new(), late_ns.to_string()),
        };
        let (end, from) = (packet.at.word(), packet.from.word());
        let bytes = packet.bytes.len();
        writeln!(out, "{},{end},{from},{bytes},{outcome},{queued},{late}", packet.time_ns)?;
    }
    out.flush()
}

#[cfg(test)]
mod tests;
