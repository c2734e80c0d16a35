use std::sync::mpsc;

use super::*;
use crate::sql::exists;

/// Takes `count` places of a lane; they are given back once the returned senders are dropped.
pub(in crate::sqlite) async fn fill<T>(
    of: &T,
    readers: fn(&T) -> &Readers,
    (reading, count): (Reading, usize),
) -> Vec<mpsc::Sender<()>>
where
    T: Clone + Send + Sync + 'static,
{
    let mut holding = Vec::new();
    for _ in 0..count {
        let (go, wait) = mpsc::channel::<()>();
        let (begins, begun) = tokio::sync::oneshot::channel();
        let of = of.clone();
        tokio::spawn(async move {
            let work = move |_: &Connection| {
                let _ = begins.send(());
                let _held_until_gone = wait.recv();
                Ok(())
            };
            readers(&of).run(reading, work).await
        });
        begun.await.expect("it reads");
        holding.push(go);
    }
    holding
}

#[tokio::test]
async fn look_ups_and_the_pipeline_read_while_every_place_for_long_reads_is_taken() {
    let folder = tempfile::TempDir::new().expect("a temporary directory");
    let path = folder.path().join("some.db");
    let settings = SqliteSettings::store();
    file::ensure(&path).expect("made");
    let readers = Arc::new(Readers::new(&path, &settings, Arc::default()).expect("a pool"));
    let held = fill(&readers, |one| one, (Reading::Long, settings.long_readers_max_count)).await;
    let look_up = |connection: &Connection| exists(connection, "SELECT 1", ());
    assert_eq!(readers.run(Reading::Short, look_up).await, Ok(true));
    assert_eq!(readers.run(Reading::Step, look_up).await, Ok(true));
    assert_eq!(readers.run(Reading::Walk, look_up).await, Ok(true));
    let waits = Arc::clone(&readers);
    let long = tokio::spawn(async move { waits.run(Reading::Long, look_up).await });
    assert_eq!(readers.run(Reading::Short, look_up).await, Ok(true));
    assert!(!long.is_finished(), "no more than so many long reads at once");
    drop(held);
    assert_eq!(long.await.expect("read"), Ok(true));
}

/// A pool over a new file, with one connection that is open and unused.
async fn warm(folder: &tempfile::TempDir) -> Arc<Readers> {
    let path = folder.path().join("some.db");
    file::ensure(&path).expect("made");
    let readers = Arc::new(Readers::new(&path, &SqliteSettings::store(), Arc::default()).expect("a pool"));
    readers.run(Reading::Short, |_| Ok(())).await.expect("read");
    readers
}

/// Returns on which thread a look-up is done.
async fn thread_of_look_up(readers: &Readers) -> std::thread::ThreadId {
    readers.look_up(|_| Ok(std::thread::current().id())).await.expect("read")
}

/// Executes work on a worker of the runtime.
async fn on_a_worker<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    tokio::spawn(work).await.expect("done")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_look_up_is_done_on_the_thread_that_asks() {
    let folder = tempfile::TempDir::new().expect("a temporary directory");
    let readers = warm(&folder).await;
    let same = on_a_worker(async move { thread_of_look_up(&readers).await == std::thread::current().id() });
    assert!(same.await);
}

#[tokio::test]
async fn the_only_worker_of_a_runtime_reads_nothing_itself() {
    let folder = tempfile::TempDir::new().expect("a temporary directory");
    let readers = warm(&folder).await;
    assert_ne!(thread_of_look_up(&readers).await, std::thread::current().id());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn look_ups_wait_without_a_thread_while_every_reader_is_taken() {
    let folder = tempfile::TempDir::new().expect("a temporary directory");
    let readers = warm(&folder).await;
    let places = SqliteSettings::store().readers_max_count;
    let held = fill(&readers, |one| one, (Reading::Short, places)).await;
    let look_up = |_| {
        let readers = Arc::clone(&readers);
        tokio::spawn(async move { thread_of_look_up(&readers).await })
    };
    let waiting: Vec<_> = (0..8).map(look_up).collect();
    // More look-ups than workers are waiting, and the workers do other things.
    on_a_worker(async {}).await;
    assert!(waiting.iter().all(|one| !one.is_finished()), "there is no reader for them");
    drop(held);
    for one in waiting {
        one.await.expect("read");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_a_disk_holds_one_look_up_up_the_others_go_to_threads_of_their_own() {
    let folder = tempfile::TempDir::new().expect("a temporary directory");
    let readers = warm(&folder).await;
    let (go, wait) = mpsc::channel::<()>();
    let (begins, begun) = tokio::sync::oneshot::channel();
    let (begins, wait) = (Mutex::new(Some(begins)), Mutex::new(wait));
    let slow = Arc::clone(&readers);
    let hanging = tokio::spawn(async move {
        let hang = move |_: &Connection| {
            let begins = begins.lock().expect("whole").take().expect("begun once");
            let _ = begins.send(std::thread::current().id());
            let _held_until_gone = wait.lock().expect("whole").recv();
            Ok(())
        };
        let asking = std::thread::current().id();
        slow.look_up(hang).await.map(|()| asking)
    });
    let held = begun.await.expect("it reads");
    let other = Arc::clone(&readers);
    let look_up = async move { (thread_of_look_up(&other).await, std::thread::current().id()) };
    let (read_on, asked_on) = on_a_worker(look_up).await;
    assert_ne!(asked_on, held, "one worker hangs, the other goes on");
    assert_ne!(read_on, asked_on, "and does not read itself");
    drop(go);
    assert_eq!(hanging.await.expect("ended"), Ok(held), "the one that hung was done where it was asked for");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_look_up_that_meets_a_shut_gate_or_a_held_file_waits_elsewhere() {
    let folder = tempfile::TempDir::new().expect("a temporary directory");
    let readers = warm(&folder).await;
    let shared = Arc::clone(&readers.shared);
    let look_up = |connection: &Connection| exists(connection, "SELECT 1", ());
    let met = shared.gate.alone(|| shared.read_without_waiting(look_up).is_none());
    assert_eq!(met, Some(true), "the gate is shut");
    assert!(shared.read_without_waiting(look_up).is_some_and(|read| read.is_ok_and(|found| found)));
    let path = folder.path().join("some.db");
    let holder = Connection::open(&path).expect("opened");
    holder.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE").expect("held");
    let rows = |connection: &Connection| exists(connection, "SELECT 1 FROM sqlite_master", ());
    assert!(shared.read_without_waiting(rows).is_none(), "another process holds the file");
    drop(holder);
    assert!(shared.read_without_waiting(rows).is_some_and(|read| read.is_ok()), "and is done with it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_look_up_that_panics_is_an_error_and_the_next_one_reads() {
    let folder = tempfile::TempDir::new().expect("a temporary directory");
    let readers = warm(&folder).await;
    let panicking = Arc::clone(&readers);
    let work = |_: &Connection| -> Done<()> { panic!("a row that nobody thought of") };
    let failed = on_a_worker(async move { panicking.look_up(work).await }).await;
    assert!(matches!(failed, Err(StoreError::Damaged(_))), "{failed:?}");
    assert_eq!(readers.look_up(|connection| exists(connection, "SELECT 1", ())).await, Ok(true));
}
