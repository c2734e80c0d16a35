use std::sync::mpsc;

use super::*;
use crate::sqlite::query::exists;

/// Takes all places of a lane; they are given back once what is returned is gone.
async fn fill(readers: &Arc<Readers>, reading: Reading, count: usize) -> Vec<mpsc::Sender<()>> {
    let mut holding = Vec::new();
    for _ in 0..count {
        let (go, wait) = mpsc::channel::<()>();
        let (begins, begun) = tokio::sync::oneshot::channel();
        let readers = Arc::clone(readers);
        tokio::spawn(async move {
            let work = move |_: &Connection| {
                let _ = begins.send(());
                let _held_until_gone = wait.recv();
                Ok(())
            };
            readers.run(reading, work).await
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
    let held = fill(&readers, Reading::Long, settings.long_readers_max_count).await;
    let look_up = |connection: &Connection| exists(connection, "SELECT 1", []);
    assert_eq!(readers.run(Reading::Short, look_up).await, Ok(true));
    assert_eq!(readers.run(Reading::Walk, look_up).await, Ok(true));
    let waits = Arc::clone(&readers);
    let long = tokio::spawn(async move { waits.run(Reading::Long, look_up).await });
    assert_eq!(readers.run(Reading::Short, look_up).await, Ok(true));
    assert!(!long.is_finished(), "no more than so many long reads at once");
    drop(held);
    assert_eq!(long.await.expect("read"), Ok(true));
}
