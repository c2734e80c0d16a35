use super::*;
use std::sync::mpsc::{Receiver, Sender, channel};

const PATIENCE: Duration = Duration::from_secs(30);

/// A writer that follows a script at each write: fails, waits, or passes on the bytes.
struct Script {
    steps: Receiver<Step>,
    written: Sender<String>,
}

#[derive(Clone, Copy)]
enum Step {
    Fail,
    Take(usize),
}

impl Write for Script {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A script that has ended takes everything.
        match self.steps.recv().unwrap_or(Step::Take(usize::MAX)) {
            Step::Fail => Err(io::Error::from(ErrorKind::StorageFull)),
            Step::Take(most) => {
                let count = bytes.len().min(most);
                let _nobody_listens =
                    self.written.send(String::from_utf8_lossy(&bytes[..count]).into_owned());
                Ok(count)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns a buffer whose notices of lost lines are lines, the sender of the script's steps, and the receiver of the written text.
fn scripted() -> (Arc<LogBuffer>, Sender<Step>, Receiver<String>) {
    let ((step, steps), (written, read)) = (channel(), channel());
    let itself = Arc::new(std::sync::OnceLock::<Arc<LogBuffer>>::new());
    let own = itself.clone();
    let tell = move |lines| {
        let line = format!("lost {lines}\n");
        own.get().into_iter().for_each(|buffer| buffer.put(line.as_bytes()));
    };
    let buffer = LogBuffer::start(Script { steps, written }, tell).unwrap();
    assert!(itself.set(buffer.clone()).is_ok());
    (buffer, step, read)
}

fn next(read: &Receiver<String>) -> String {
    read.recv_timeout(PATIENCE).unwrap()
}

#[test]
fn lines_are_written_in_order_and_the_last_ones_before_the_end() {
    let (buffer, step, read) = scripted();
    drop(step);
    buffer.put(b"one\n");
    buffer.put(b"two\n");
    buffer.wait(PATIENCE);
    assert_eq!(read.try_iter().collect::<String>(), "one\ntwo\n");
}

#[test]
fn lines_that_fail_are_counted_and_told_by_itself_once_writing_works_again() {
    let (buffer, step, read) = scripted();
    step.send(Step::Fail).unwrap();
    buffer.put(b"one\n");
    buffer.wait(PATIENCE);
    // The notice fails, too, and is not counted.
    step.send(Step::Fail).unwrap();
    drop(step);
    assert_eq!(next(&read), "lost 1\n");
    buffer.put(b"two\n");
    assert_eq!(next(&read), "two\n");
}

#[test]
fn a_line_that_broke_off_is_lost_and_the_next_one_begins_a_line() {
    let (buffer, step, read) = scripted();
    step.send(Step::Take(2)).unwrap();
    step.send(Step::Fail).unwrap();
    buffer.put(b"one\n");
    assert_eq!(next(&read), "on");
    drop(step);
    assert_eq!([next(&read), next(&read)], ["\n", "lost 1\n"]);
}

#[test]
fn a_file_that_takes_nothing_holds_nobody_up_and_costs_no_more_than_the_room_for_what_waits() {
    let (buffer, step, read) = scripted();
    let line = [b'x'; 1_023].iter().chain(b"\n").copied().collect::<Vec<_>>();
    buffer.put(&line);
    // The thread that writes waits for its script from here on.
    while !buffer.lock().is_writing {
        std::thread::yield_now();
    }
    (0..2_000).for_each(|_| buffer.put(&line));
    assert_eq!(buffer.lock().bytes.len(), WAITING_MAX_BYTES);
    assert_eq!(buffer.lock().lost_lines, 2_000 - 1_024);
    buffer.wait(Duration::ZERO);
    drop(step);
    assert_eq!(next(&read).len(), 1_024);
    assert_eq!(next(&read), "lost 976\n");
    assert_eq!(next(&read).len(), WAITING_MAX_BYTES);
}
