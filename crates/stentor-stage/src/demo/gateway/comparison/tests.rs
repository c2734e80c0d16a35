use super::Comparison;
use crate::mqtt_devices::DeviceRecord;

const MESSAGE: &str = "msg_1";

fn judged(record: &DeviceRecord) -> Comparison {
    let mut comparison = Comparison::default();
    comparison.note(0, record, MESSAGE);
    comparison
}

fn got(messages: &[(&str, u32)]) -> DeviceRecord {
    DeviceRecord::of(messages)
}

#[test]
fn a_device_that_got_it_once_agrees() {
    let comparison = judged(&got(&[(MESSAGE, 1)]));
    assert_eq!((comparison.lost, comparison.disagreeing, comparison.duplicates), (0, 0, 0));
    assert!(comparison.examples.is_empty());
}

#[test]
fn a_device_that_got_nothing_is_lost() {
    assert_eq!(judged(&got(&[])).lost, 1);
}

#[test]
fn what_came_again_through_another_connection_is_a_duplicate_and_in_order() {
    let comparison = judged(&got(&[(MESSAGE, 3)]));
    assert_eq!((comparison.duplicates, comparison.unmarked_duplicates, comparison.lost), (2, 0, 0));
}

#[test]
fn what_came_twice_through_one_connection_is_told() {
    let mut record = got(&[(MESSAGE, 2)]);
    record.repeats_within_connection = 1;
    assert_eq!(judged(&record).unmarked_duplicates, 1);
}

#[test]
fn a_message_of_nobody_and_a_fault_are_contradictions() {
    assert_eq!(judged(&got(&[(MESSAGE, 1), ("msg_2", 1)])).disagreeing, 1);
    let mut record = got(&[(MESSAGE, 1)]);
    record.faults.push("a message is not whole");
    assert_eq!(judged(&record).disagreeing, 1);
}
