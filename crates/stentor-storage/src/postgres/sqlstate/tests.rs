use super::*;

/// The classes of PostgreSQL 15, appendix A, in its order.
const APPENDIX: [&str; 43] = [
    "00", "01", "02", "03", "08", "09", "0A", "0B", "0F", "0L", "0P", "0Z", "20", "21", "22", "23", "24",
    "25", "26", "27", "28", "2B", "2D", "2F", "34", "38", "39", "3B", "3D", "3F", "40", "42", "44", "53",
    "54", "55", "57", "58", "72", "F0", "HV", "P0", "XX",
];

#[test]
fn every_class_of_the_appendix_has_one_meaning_and_no_other_class_has_any() {
    let known: Vec<_> = CLASSES.iter().map(|(class, _)| *class).collect();
    assert_eq!(known, APPENDIX);
}

#[test]
fn every_code_of_the_table_is_of_a_known_class_stands_once_and_differs_from_its_class() {
    for (at, (code, own)) in CODES.iter().enumerate() {
        assert_eq!(code.len(), 5, "{code}");
        assert!(CODES[..at].iter().all(|(other, _)| other != code), "{code} stands twice");
        let of_class = meaning_in(CLASSES, &&code[..2]);
        assert!(of_class.is_some_and(|meaning| meaning != *own), "{code} says nothing new");
    }
}

#[test]
fn each_code_that_a_server_gives_in_trouble_means_what_is_to_be_done() {
    let expected = [
        ("XX000", Retry), // a disk quota, a stale file handle, a pooler that refuses
        ("P0001", Retry),
        ("58030", Retry),
        ("25006", Retry), // a server that only reads
        ("53100", Full),
        ("53200", Busy),
        ("53300", Busy),
        ("57014", Busy),
        ("57P01", Lost),
        ("08006", Lost),
        ("08P01", Lost), // any message of PgBouncer
        ("26000", Lost),
        ("42P05", Lost),
        ("40001", Conflict),
        ("40P01", Conflict),
        ("28P01", Refused),
        ("3D000", Refused),
        ("42501", Refused),
        ("42601", Misused),
        ("22003", Damaged),
        ("23514", Damaged),
        ("22000", Retry),
        ("XX001", Unreadable),
        ("ZZZZZ", Retry),
        ("", Retry),
    ];
    for (code, meant) in expected {
        assert_eq!(meaning(code), meant, "{code}");
    }
}

#[test]
fn only_what_a_value_or_a_constraint_proves_is_damage() {
    for (class, meant) in CLASSES {
        assert_eq!(*meant == Damaged, ["22", "23"].contains(class), "{class}");
    }
    assert!(CODES.iter().all(|(_, meant)| *meant != Damaged));
}
