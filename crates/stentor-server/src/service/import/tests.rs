use super::lines::Cutter;
use super::parse::{Format, Importer};
use super::*;

fn parse(format: Format, body: &[u8]) -> Parsed {
    let mut importer = Importer::new(format);
    let parsed = importer.parse(body).expect("a header that makes sense");
    importer.finish().expect("complete");
    parsed
}

fn refusals(parsed: &Parsed) -> Vec<(u64, &str, Option<&str>)> {
    let one = |problem: &'_ ImportProblem| (problem.line, problem.code.as_str(), problem.field.clone());
    let found: Vec<_> = parsed.problems.iter().map(one).collect();
    found.into_iter().map(|(line, code, field)| (line, code, field.map(|field| &*field.leak()))).collect()
}

#[test]
fn a_bad_ndjson_line_costs_only_itself() {
    let body = b"\xef\xbb\xbf{\"platform\":\"android\",\"token\":\"a\"}\r\n\n\
        {\"platform\":\"androis\",\"token\":\"b\"}\n\
        {\"platform\":\"android\",\"token\":\"c\",\"tagz\":[]}\n\
        {\"platform\":\"android\"}\n\
        {\"platform\":\"android\",\"token\":\"\xff\"}\n\
        {\"platform\":\"android\",\"token\":\"d\",\"time_zone\":\"Mars/Olympus\"}\n\
        [1,2\n\
        {\"platform\":\"android\",\"token\":\"e\"} {}\n\
        {\"platform\":\"android\",\"token\":\"f\",\"topics\":[\"news\"],\"tags\":[\"x\"]}";
    let parsed = parse(Format::Ndjson, body);
    assert_eq!(parsed.lines, [1, 10]);
    assert_eq!(parsed.registrations[1].topics.len(), 1);
    let expected = [
        (3, "invalid_field", Some("platform")),
        (4, "invalid_field", Some("tagz")),
        (5, "invalid_field", Some("token")),
        (6, "invalid_request", None),
        (7, "invalid_field", Some("time_zone")),
        (8, "invalid_request", None),
        (9, "invalid_request", None),
    ];
    assert_eq!(refusals(&parsed), expected);
}

#[test]
fn csv_takes_columns_in_any_order_and_a_stray_quote_costs_its_line() {
    let body = b"token,platform,tags,topics,user\n\
        t1,android,a;b,news;sport,u-1\n\
        \"t2\",android,,,\"Smith, Anna\"\n\
        \"t3,android,,,\n\
        t4,android\n\
        t5,web,,,\n\
        \xff,android,,,\n\
        t6,android,,,\n";
    let parsed = parse(Format::Csv, body);
    assert_eq!(parsed.lines, [2, 3, 8]);
    assert_eq!(parsed.registrations[0].facts.tags.len(), 2);
    assert_eq!(parsed.registrations[1].facts.user.as_ref().expect("given").as_str(), "Smith, Anna");
    let expected = [
        (4, "invalid_request", None),
        (5, "invalid_request", None),
        (6, "invalid_field", Some("token")),
        (7, "invalid_request", None),
    ];
    assert_eq!(refusals(&parsed), expected);
}

#[test]
fn blocks_of_blank_lines_are_counted_so_that_a_bad_line_has_its_own_number() {
    let blocks: [&[u8]; 4] = [b"\n", b"\r\n\n", b"nonsense\n", b""];
    let report = examine(Format::Ndjson, blocks).expect("read");
    assert_eq!((report.lines, report.failed, report.errors[0].line), (1, 1, 4));
}

#[test]
fn an_unknown_column_is_refused_with_the_nearest_name() {
    let mut importer = Importer::new(Format::Csv);
    let problem = importer.parse(b"platform,tokn\n").expect_err("refused");
    assert_eq!(problem.field.as_deref(), Some("header"));
    assert_eq!(problem.hint.as_deref(), Some("did you mean `token`?"));
}

#[test]
fn a_csv_body_without_header_is_refused() {
    let importer = Importer::new(Format::Csv);
    assert_eq!(importer.finish().expect_err("refused").field.as_deref(), Some("header"));
}

#[test]
fn a_line_too_long_costs_only_itself_however_long_it_is() {
    let mut cutter = Cutter::default();
    let mut blocks = Vec::new();
    let good = b"{\"platform\":\"android\",\"token\":\"a\"}\n";
    blocks.extend(cutter.push(good));
    for _ in 0..40 {
        blocks.extend(cutter.push(&[b'x'; 64 * 1_024]));
    }
    blocks.extend(cutter.push(b"\n"));
    blocks.extend(cutter.push(good));
    blocks.push(cutter.finish());
    assert!(blocks.iter().map(Bytes::len).sum::<usize>() < 600_000, "the long line was not kept");
    let mut importer = Importer::new(Format::Ndjson);
    let mut all = Parsed::default();
    blocks.iter().for_each(|block| all.append(importer.parse(block).expect("ndjson has no header")));
    assert_eq!(all.lines, [1, 3]);
    assert_eq!(refusals(&all), [(2, "payload_too_large", None)]);
}

proptest::proptest! {
    #[test]
    fn no_bytes_make_the_parser_panic(body in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..400), csv: bool) {
        let mut importer = Importer::new(if csv { Format::Csv } else { Format::Ndjson });
        let _ = importer.parse(&body);
    }

    #[test]
    fn wherever_the_stream_is_cut_the_lines_stay_the_same(cuts in proptest::collection::vec(1..50_usize, 1..40)) {
        let body: String = (0..50).map(|n| format!("{{\"platform\":\"android\",\"token\":\"t{n}\"}}\n")).collect();
        let (mut cutter, mut rest) = (Cutter::default(), body.as_bytes());
        let mut whole = Vec::new();
        for cut in cuts.iter().cycle() {
            let (piece, after) = rest.split_at((*cut).min(rest.len()));
            whole.extend(cutter.push(piece).unwrap_or_default());
            rest = after;
            if rest.is_empty() { break; }
        }
        whole.extend(cutter.finish());
        proptest::prop_assert_eq!(whole, body.as_bytes());
    }
}
