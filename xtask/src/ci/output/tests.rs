use super::*;

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

fn forwarded(script: &str) -> (bool, String, Vec<String>) {
    let (mut out, mut lines) = (Vec::new(), Vec::new());
    let ended = forward(shell(script), &mut out, |line| lines.push(line.to_owned())).unwrap();
    (ended.status.success(), String::from_utf8(out).unwrap(), lines)
}

#[test]
fn both_outputs_are_handed_on_in_order_and_as_lines() {
    let (succeeded, out, lines) =
        forwarded("echo one; echo two >&2; printf three; printf ' parts\\nrest'; exit 3");
    assert!(!succeeded);
    assert_eq!(out, "one\ntwo\nthree parts\nrest");
    assert_eq!(lines, ["one", "two", "three parts", "rest"]);
}

#[test]
fn what_goes_on_holding_the_output_open_holds_nothing_up() {
    let began = std::time::Instant::now();
    let (succeeded, _, lines) = forwarded("sleep 60 & echo $!");
    assert!(succeeded && began.elapsed() < Duration::from_secs(30));
    shell(&format!("kill {}", lines[0])).status().unwrap();
}

/// Answers through a named pipe for which the command waits.
struct Answering(std::path::PathBuf);

impl Write for Answering {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        std::fs::write(&self.0, bytes).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn what_is_printed_is_handed_on_while_the_command_runs() {
    let folder = tempfile::tempdir().unwrap();
    let answers = folder.path().join("answers");
    // The command ends only after its line was forwarded: a forwarder that kept the line until the end would wait for ever.
    let script = format!("mkfifo {0} && echo first && read line < {0}", answers.display());
    assert!(forward(shell(&script), &mut Answering(answers), |_| {}).unwrap().status.success());
}

#[test]
fn nothing_asks_for_colours_where_the_output_is_no_terminal() {
    if !io::stdout().is_terminal() {
        assert_eq!(forwarded("echo $CARGO_TERM_COLOR").1, "never\n");
    }
}

#[test]
fn the_processor_time_of_a_command_is_its_own_and_that_of_its_children() {
    let work = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
    let ended = forward(shell(&format!("({work}) & wait; {work}")), &mut io::sink(), |_| {}).unwrap();
    let idle = forward(shell("sleep 0.1"), &mut io::sink(), |_| {}).unwrap();
    let seconds = [idle.processor_seconds, ended.processor_seconds];
    assert!(seconds[0] < 0.1 && seconds[1] >= 0.04, "{seconds:?}");
}
