//! The files of store and queue: there, whole, and set up so that a commit is on disk.

use super::{Finding, Health};
use crate::output::thousands;
use std::path::{Path, PathBuf};
use stentor_server::app::{Depth, Inspection, inspect, queue_file, store_file};

/// A file, and what to do when something is wrong with it.
struct Subject {
    name: &'static str,
    path: PathBuf,
    /// What it means that there is none.
    missing: (Health, &'static str),
    /// What it means that it is damaged.
    damaged: (Health, &'static str),
    /// When a server that runs commits to it; the server asks SQLite at every start and refuses anything less.
    synchronous: &'static str,
}

/// Looks at both files.
pub(super) async fn look(data_dir: PathBuf, depth: Depth) -> Vec<Finding> {
    let looking = tokio::task::spawn_blocking(move || {
        [database(&data_dir), queue(&data_dir)].map(|subject| examine(&subject, depth)).into()
    });
    looking.await.unwrap_or_else(|error| {
        let advice = "run the doctor again, and tell us when it stays";
        vec![Finding::bad("database", Health::Broken, format!("the look at it failed: {error}"), advice)]
    })
}

fn database(data_dir: &Path) -> Subject {
    Subject {
        name: "database",
        path: store_file(data_dir),
        missing: (
            Health::Doubtful,
            "point --data-dir at the server's data, or start a server that makes it (with store.engine = \
             \"memory\" there is none)",
        ),
        damaged: (
            Health::Broken,
            "stop the server, keep a copy of the whole data directory, check the disk, and restore the last backup \
             together with its key.pepper",
        ),
        synchronous: "FULL",
    }
}

fn queue(data_dir: &Path) -> Subject {
    Subject {
        name: "queue file",
        path: queue_file(data_dir),
        missing: (Health::Good, ""),
        damaged: (
            Health::Doubtful,
            "stop the server, delete the file with its -wal and -shm, and start it again: the queue is filled anew from \
             the database",
        ),
        synchronous: "NORMAL",
    }
}

fn examine(subject: &Subject, depth: Depth) -> Finding {
    let path = subject.path.display();
    if !subject.path.exists() {
        return finding(subject.name, subject.missing, format!("{path} does not exist"));
    }
    match inspect(&subject.path, depth) {
        Ok(found) => judge(subject, &found, depth),
        Err(error) => {
            let advice = "run the doctor as the user of the server";
            Finding::bad(subject.name, Health::Doubtful, format!("not read: {error}"), advice)
        }
    }
}

fn judge(subject: &Subject, found: &Inspection, depth: Depth) -> Finding {
    let path = subject.path.display();
    if !found.problems.is_empty() {
        let told = found.problems.join("; ");
        return finding(subject.name, subject.damaged, format!("{path} is damaged: {told}"));
    }
    if !found.is_write_ahead {
        let advice = "start a server on it, which turns the log on, or says why it cannot: a network file system has none";
        return Finding::bad(
            subject.name,
            Health::Doubtful,
            format!("{path} has no write-ahead log"),
            advice,
        );
    }
    let read = match depth {
        Depth::Quick => "every page read",
        Depth::Deep => "every page and index read",
    };
    let size = thousands(found.bytes >> 10);
    let synchronous = subject.synchronous;
    let detail = format!("{path} is whole ({size} KiB, {read}); WAL, and servers commit with {synchronous}");
    Finding::good(subject.name, detail)
}

fn finding(subject: &'static str, (health, advice): (Health, &'static str), detail: String) -> Finding {
    match health {
        Health::Good => Finding::good(subject, detail),
        health => Finding::bad(subject, health, detail, advice),
    }
}
