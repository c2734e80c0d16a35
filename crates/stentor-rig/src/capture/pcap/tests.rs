use super::*;
use crate::side::Side;

fn packet(time_ns: u64, note: Note) -> Packet {
    Packet { at: Side::Device, from: Side::Device, time_ns, note, bytes: vec![0x45, 0, 0, 20].into() }
}

#[test]
fn a_file_begins_with_the_magic_of_nanoseconds_and_raw_ip() {
    let mut file = Vec::new();
    write(&mut file, [packet(5, Note::Lost)].iter(), 2_000_000_001).unwrap();
    assert_eq!(file[..4], [0x4d, 0x3c, 0xb2, 0xa1]);
    assert_eq!(file[20..24], [101, 0, 0, 0]);
    // Seconds, nanoseconds, both lengths, bytes.
    assert_eq!(file[24..40], [2, 0, 0, 0, 6, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0]);
    assert_eq!(file[40..], [0x45, 0, 0, 20]);
}

#[test]
fn each_packet_has_a_line_with_its_note() {
    let mut file = Vec::new();
    write_notes(&mut file, &[packet(5, Note::Sent { queued_ns: 9 }), packet(6, Note::Overflowed)]).unwrap();
    let text = String::from_utf8(file).unwrap();
    assert!(text.ends_with("\n5,device,device,4,sent,9,\n6,device,device,4,overflowed,,\n"), "{text}");
}
