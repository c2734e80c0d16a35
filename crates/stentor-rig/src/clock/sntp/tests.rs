use super::*;
use proptest::prelude::*;
use std::sync::Arc;

#[test]
fn an_answer_carries_the_asked_time_and_both_of_its_own() {
    let answer = answer(&query(5_000_000_123), 7_000_000_001, 7_000_000_002).unwrap();
    assert_eq!(answer[0], 0x24, "version 4, server");
    let stamps = read(&answer, 5_000_000_123, 5_000_000_323).unwrap();
    assert_eq!((stamps.received_ns, stamps.answered_ns), (7_000_000_001, 7_000_000_002));
    assert_eq!(stamps.round_trip_ns(), 199);
    assert_eq!(read(&answer, 5_000_000_124, 0), None, "the answer to another query");
}

#[test]
fn what_is_no_query_gets_no_answer() {
    assert_eq!(answer(&[0x23; 47], 0, 0), None);
    assert_eq!(answer(&[0x24; 48], 0, 0), None, "an answer is not answered, or two servers never end");
    // Stratum 0 is a refusal.
    let mut refusal = answer(&query(9), 1, 1).unwrap();
    refusal[1] = 0;
    assert_eq!(read(&refusal, 9, 9), None);
}

#[test]
fn a_clock_that_is_ahead_is_found_over_a_socket() {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let ahead = Drifting { offset_ns: 137_000_000, ..Drifting::default() };
    let thread = std::thread::spawn({
        let stop = Arc::clone(&stop);
        move || serve(&server, ahead, &stop)
    });
    let stamps = ask(&UdpSocket::bind("127.0.0.1:0").unwrap(), address, Drifting::default()).unwrap();
    stop.store(true, Ordering::Relaxed);
    thread.join().unwrap().unwrap();
    let error = stamps.offset_ns() - 137e6;
    assert!(error.abs() <= stamps.round_trip_ns() as f64 / 2.0 + 2.0, "{stamps:?}");
}

proptest! {
    #[test]
    fn a_time_survives_its_stamp(ns in 0..2_147_483_647_999_999_999_i64) {
        prop_assert_eq!(from_stamp(to_stamp(ns)), ns);
    }

    #[test]
    fn no_packet_makes_it_panic(packet in prop::collection::vec(any::<u8>(), 0..80), at: i64) {
        let _ = answer(&packet, at, at);
        let _ = read(&packet, at, at);
    }

    #[test]
    fn equal_ways_give_the_true_offset_and_unequal_ones_miss_it_by_half_the_difference(
        offset in -1_000_000_000..1_000_000_000_i64,
        up in 0..1_000_000_000_i64,
        down in 0..1_000_000_000_i64,
    ) {
        let stamps = Stamps {
            asked_ns: 0, received_ns: up + offset, answered_ns: up + offset + 9, known_ns: up + 9 + down,
        };
        prop_assert_eq!(stamps.offset_ns(), offset as f64 + (up - down) as f64 / 2.0);
        prop_assert_eq!(stamps.round_trip_ns(), up + down);
    }
}
