use std::sync::{PoisonError, mpsc};

use super::*;
use crate::sql::{conflict, damaged, run};

fn writer(jobs: usize) -> (tempfile::TempDir, WriterThread) {
    let folder = tempfile::TempDir::new().expect("a temporary directory");
    let connection = Connection::open(folder.path().join("some.db")).expect("opened");
    connection.execute_batch("CREATE TABLE numbers (n INTEGER PRIMARY KEY)").expect("made");
    let settings = SqliteSettings {
        group_commit_max_jobs: jobs,
        group_commit_max_ms: 60_000,
        ..SqliteSettings::store()
    };
    (folder, WriterThread::start("writer-test", connection, &settings, |_| ()).expect("started"))
}

fn insert(number: i64) -> impl FnOnce(&Connection) -> Done<usize> + Send {
    move |connection| run(connection, "INSERT INTO numbers VALUES (?1)", [number])
}

async fn sum(writer: &WriterThread) -> Option<i64> {
    let read = |connection: &Connection| {
        Ok(connection.query_row("SELECT sum(n) FROM numbers", [], |row| row.get(0))?)
    };
    writer.run(CommitPriority::Usual, read).await.expect("read")
}

/// Submits a job that blocks the thread until a signal, so that the jobs after it meet in one commit.
async fn hold_up(writer: &WriterThread) -> (mpsc::Sender<()>, Pending<()>) {
    let (go, wait) = mpsc::channel::<()>();
    let (begins, begun) = oneshot::channel();
    let block = move |_: &Connection| {
        let _ = begins.send(());
        wait.recv().map_err(|_| damaged("nobody said go"))
    };
    let held = writer.submit(CommitPriority::Usual, block).await;
    begun.await.expect("it has begun");
    (go, held)
}

#[tokio::test]
async fn a_failing_job_takes_nothing_of_the_others_with_it() {
    let (_folder, writer) = writer(100);
    let (go, held) = hold_up(&writer).await;
    let first = writer.submit(CommitPriority::Usual, insert(1)).await;
    let failing = writer.submit(CommitPriority::Usual, |connection: &Connection| {
        run(connection, "INSERT INTO numbers VALUES (100)", ())?;
        Err::<(), _>(conflict("no"))
    });
    let failing = failing.await;
    let last = writer.submit(CommitPriority::Usual, insert(2)).await;
    go.send(()).expect("told");
    held.await_commit().await.expect("done");
    assert_eq!(first.await_commit().await, Ok(1));
    assert_eq!(failing.await_commit().await, Err(StoreError::Conflict("no".into())));
    assert_eq!(last.await_commit().await, Ok(1));
    assert_eq!(sum(&writer).await, Some(3));
}

#[tokio::test]
async fn a_job_that_fails_before_all_others_is_taken_back_too() {
    let (_folder, writer) = writer(100);
    let failing = writer.run(CommitPriority::Usual, |connection: &Connection| {
        run(connection, "INSERT INTO numbers VALUES (100)", ())?;
        Err::<(), _>(conflict("no"))
    });
    assert!(failing.await.is_err());
    writer.run(CommitPriority::Usual, insert(1)).await.expect("kept");
    assert_eq!(sum(&writer).await, Some(1));
}

#[tokio::test]
async fn a_checked_job_that_fails_its_checks_takes_nothing_of_the_others_with_it() {
    let (_folder, writer) = writer(100);
    let (go, held) = hold_up(&writer).await;
    let first = writer.submit_checked(CommitPriority::Usual, insert(1)).await;
    let failing =
        writer.submit_checked(CommitPriority::Usual, |_: &Connection| Err::<(), _>(conflict("no"))).await;
    let repeated = writer.submit_checked(CommitPriority::Usual, insert(1)).await;
    let last = writer.submit_checked(CommitPriority::Usual, insert(2)).await;
    go.send(()).expect("told");
    held.await_commit().await.expect("done");
    assert_eq!(first.await_commit().await, Ok(1));
    assert_eq!(failing.await_commit().await, Err(StoreError::Conflict("no".into())));
    assert!(repeated.await_commit().await.is_err(), "the number is there already");
    assert_eq!(last.await_commit().await, Ok(1));
    assert_eq!(sum(&writer).await, Some(3));
}

#[tokio::test]
async fn a_checked_job_that_fails_in_its_middle_fails_its_whole_commit_and_leaves_nothing() {
    let (_folder, writer) = writer(100);
    let (go, held) = hold_up(&writer).await;
    let before = writer.submit_checked(CommitPriority::Usual, insert(1)).await;
    let torn = writer.submit_checked(CommitPriority::Usual, |connection: &Connection| {
        run(connection, "INSERT INTO numbers VALUES (100)", ())?;
        Err::<(), _>(damaged("the disk is gone"))
    });
    let torn = torn.await;
    go.send(()).expect("told");
    assert!(
        held.await_commit().await.is_err()
            && before.await_commit().await.is_err()
            && torn.await_commit().await.is_err()
    );
    writer.run(CommitPriority::Usual, insert(2)).await.expect("kept");
    assert_eq!(sum(&writer).await, Some(2));
}

#[tokio::test]
async fn a_panic_in_a_job_is_an_error_and_the_thread_goes_on() {
    let (_folder, writer) = writer(100);
    let panicking = writer.run(CommitPriority::Usual, |connection: &Connection| -> Done<()> {
        run(connection, "INSERT INTO numbers VALUES (100)", ())?;
        panic!("on purpose")
    });
    assert!(matches!(panicking.await, Err(StoreError::Damaged(_))));
    writer.run(CommitPriority::Usual, insert(1)).await.expect("kept");
    assert_eq!(sum(&writer).await, Some(1));
}

#[tokio::test]
async fn a_transaction_that_the_engine_took_back_fails_every_job_of_it() {
    let (_folder, writer) = writer(100);
    let (go, held) = hold_up(&writer).await;
    let before = writer.submit(CommitPriority::Usual, insert(1)).await;
    let taken_back = writer
        .submit(CommitPriority::Usual, |connection: &Connection| Ok(connection.execute_batch("ROLLBACK")?))
        .await;
    let after = writer.submit(CommitPriority::Usual, insert(2)).await;
    go.send(()).expect("told");
    assert!(held.await_commit().await.is_err());
    assert!(before.await_commit().await.is_err());
    assert!(taken_back.await_commit().await.is_err());
    assert_eq!(after.await_commit().await, Ok(1), "it is in the next commit");
    assert_eq!(sum(&writer).await, Some(2));
}

#[tokio::test]
async fn what_was_handed_over_is_committed_before_the_writer_is_gone() {
    let (folder, writer) = writer(1);
    let mut pending = Vec::new();
    for number in 1..=20 {
        pending.push(writer.submit(CommitPriority::Usual, insert(number)).await);
    }
    drop(writer);
    for one in pending {
        assert_eq!(one.await_commit().await, Ok(1));
    }
    let connection = Connection::open(folder.path().join("some.db")).expect("opened");
    let sum: i64 = connection.query_row("SELECT sum(n) FROM numbers", [], |row| row.get(0)).expect("read");
    assert_eq!(sum, 210);
}

#[tokio::test]
async fn who_is_waited_for_goes_first_and_its_commit_waits_for_no_others() {
    let (_folder, writer) = writer(100);
    let order = Arc::new(Mutex::new(Vec::new()));
    let note = |name: &'static str| {
        let order = Arc::clone(&order);
        move |_: &Connection| {
            order.lock().unwrap_or_else(PoisonError::into_inner).push(name);
            Ok(())
        }
    };
    let (go, held) = hold_up(&writer).await;
    let mut pending = Vec::new();
    for name in ["usual 1", "usual 2"] {
        pending.push(writer.submit(CommitPriority::Usual, note(name)).await);
    }
    for name in ["first 1", "first 2"] {
        pending.push(writer.submit(CommitPriority::First, note(name)).await);
    }
    go.send(()).expect("told");
    held.await_commit().await.expect("done");
    for one in pending {
        one.await_commit().await.expect("done");
    }
    let order = order.lock().unwrap_or_else(PoisonError::into_inner).clone();
    assert_eq!(order, ["first 1", "first 2", "usual 1", "usual 2"]);
}

#[tokio::test]
async fn jobs_in_a_hurry_never_hold_up_the_others_for_good() {
    let (_folder, writer) = writer(1);
    let (go, held) = hold_up(&writer).await;
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut pending = Vec::new();
    for line in [
        CommitPriority::First,
        CommitPriority::First,
        CommitPriority::First,
        CommitPriority::Usual,
        CommitPriority::Usual,
    ] {
        let order = Arc::clone(&order);
        let note = move |_: &Connection| {
            order.lock().unwrap_or_else(PoisonError::into_inner).push(line);
            Ok(())
        };
        pending.push(writer.submit(line, note).await);
    }
    go.send(()).expect("told");
    held.await_commit().await.expect("done");
    for one in pending {
        one.await_commit().await.expect("done");
    }
    let order = order.lock().unwrap_or_else(PoisonError::into_inner).clone();
    assert_eq!(
        order,
        [
            CommitPriority::First,
            CommitPriority::Usual,
            CommitPriority::First,
            CommitPriority::Usual,
            CommitPriority::First
        ]
    );
}

/// Ends the thread that drops it.
struct Fatal;

impl Drop for Fatal {
    fn drop(&mut self) {
        panic!("on purpose");
    }
}

#[tokio::test]
async fn the_death_of_the_thread_is_noticed_and_nobody_waits_for_it() {
    let (_folder, writer) = writer(1);
    let (go, held) = hold_up(&writer).await;
    // Its caller is gone, so its answer is dropped at a place where no panic is expected.
    drop(writer.submit(CommitPriority::Usual, |_: &Connection| Ok(Fatal)).await);
    let behind = writer.submit(CommitPriority::Usual, insert(1)).await;
    go.send(()).expect("told");
    held.await_commit().await.expect("done");
    assert_eq!(writer.ended().await, "it panicked: on purpose");
    assert!(matches!(behind.await_commit().await, Err(StoreError::Unavailable(_))));
    assert!(matches!(writer.run(CommitPriority::Usual, insert(2)).await, Err(StoreError::Unavailable(_))));
    assert!(writer.keeps(|_| Ok(())).await.is_err());
}

fn probe(connection: &Connection) -> Done<()> {
    run(connection, "INSERT INTO numbers SELECT coalesce(max(n), 1000) + 1 FROM numbers", ()).map(drop)
}

#[tokio::test]
async fn what_was_kept_just_now_needs_no_trial_and_what_was_read_or_failed_is_no_sign() {
    let (_folder, writer) = writer(100);
    assert_eq!(sum(&writer).await, None);
    writer.keeps(probe).await.expect("kept");
    assert_eq!(sum(&writer).await, Some(1_001), "it was tried");
    writer.keeps(probe).await.expect("kept");
    assert_eq!(sum(&writer).await, Some(1_001), "it was known");
}

#[tokio::test]
async fn a_commit_that_failed_says_so_for_a_while_and_then_it_is_tried() {
    let (folder, writer) = writer(100);
    writer
        .run(CommitPriority::Usual, |connection: &Connection| Ok(connection.busy_timeout(Duration::ZERO)?))
        .await
        .expect("done");
    let other = Connection::open(folder.path().join("some.db")).expect("opened");
    other.execute_batch("BEGIN IMMEDIATE").expect("locked");
    assert!(writer.run(CommitPriority::Usual, insert(1)).await.is_err());
    other.execute_batch("ROLLBACK").expect("free");
    assert!(writer.keeps(probe).await.is_err(), "it failed just now");
    while writer.keeps(probe).await.is_err() {
        tokio::task::yield_now().await;
    }
    assert_eq!(sum(&writer).await, Some(1_001), "it was tried");
}
