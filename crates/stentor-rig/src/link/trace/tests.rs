use super::*;
use proptest::prelude::*;

const MS: u64 = MILLISECOND_NS;

#[test]
fn a_trace_begins_anew_at_its_end() {
    let trace = Trace::parse("1\n3\n\n4\n").unwrap();
    let times: Vec<u64> = (0..7).map(|number| trace.at_ns(number) / MS).collect();
    assert_eq!(times, [1, 3, 4, 5, 7, 8, 9]);
}

#[test]
fn what_is_no_trace_is_refused_with_its_line() {
    assert_eq!(Trace::parse("1\nx\n"), Err(TraceError::NoNumber(2)));
    assert_eq!(Trace::parse("1\n-1\n"), Err(TraceError::NoNumber(2)));
    assert_eq!(Trace::parse("5\n4\n"), Err(TraceError::Backwards(2)));
    assert_eq!(Trace::parse("0\n0\n"), Err(TraceError::Empty));
    assert_eq!(Trace::parse(""), Err(TraceError::Empty));
}

proptest! {
    #[test]
    fn the_first_opportunity_is_found_as_by_looking_at_each(
        mut times in prop::collection::vec(0..50_u64, 1..20),
        from_ns in 0..400 * MS,
    ) {
        times.push(50);
        times.sort_unstable();
        let text: Vec<String> = times.iter().map(u64::to_string).collect();
        let trace = Trace::parse(&text.join("\n")).unwrap();
        let by_looking = (0..).find(|number| trace.at_ns(*number) >= from_ns);
        prop_assert_eq!(Some(trace.first_from(from_ns)), by_looking);
    }

    #[test]
    fn any_text_is_a_trace_or_refused(text in "[0-9a\n ]{0,60}") {
        let _ = Trace::parse(&text);
    }
}
