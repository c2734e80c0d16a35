//! Checks the files of store and queue: present, intact, and configured so that a commit is on disk.

use super::{FindingHealth, ServerFinding};
use crate::output::thousands;
use std::path::{Path, PathBuf};
use stentor_node::{Depth, Inspection, inspect, queue_file, store_file};

/// The gravity of a problem, and the advice against it.
#[derive(Clone, Copy)]
struct FileProblem {
    health: FindingHealth,
    advice: &'static str,
}

/// A file, with the findings for its possible problems.
struct CheckedFile {
    name: &'static str,
    path: PathBuf,
    /// The finding if the file is missing.
    missing: FileProblem,
    /// The finding if the file is damaged.
    damaged: FileProblem,
    /// SQLite's `synchronous` setting of a running server; the server checks it at every start and refuses a weaker one.
    synchronous: &'static str,
}

/// Checks both files, or the queue's alone if the store is elsewhere.
pub(super) async fn look(data_dir: PathBuf, depth: Depth, is_store_elsewhere: bool) -> Vec<ServerFinding> {
    let looking = tokio::task::spawn_blocking(move || {
        let files = [(!is_store_elsewhere).then(|| database(&data_dir)), Some(queue(&data_dir))];
        files.into_iter().flatten().map(|subject| examine(&subject, depth)).collect()
    });
    looking.await.unwrap_or_else(|error| {
        let advice = "run the doctor again; if the error persists, report it";
        vec![ServerFinding::bad(
            "database",
            FindingHealth::Broken,
            format!("the examination failed: {error}"),
            advice,
        )]
    })
}

fn database(data_dir: &Path) -> CheckedFile {
    CheckedFile {
        name: "database",
        path: store_file(data_dir),
        missing: FileProblem {
            health: FindingHealth::Doubtful,
            advice: "point --data-dir at the server's data, or start a server that makes it (with store.engine = \
             \"memory\" there is none)",
        },
        damaged: FileProblem {
            health: FindingHealth::Broken,
            advice: "stop the server, keep a copy of the whole data directory, check the disk, and restore the last backup \
             together with its key.pepper",
        },
        synchronous: "FULL",
    }
}

fn queue(data_dir: &Path) -> CheckedFile {
    CheckedFile {
        name: "queue file",
        path: queue_file(data_dir),
        missing: FileProblem { health: FindingHealth::Good, advice: "" },
        damaged: FileProblem {
            health: FindingHealth::Doubtful,
            advice: "stop the server, delete the file with its -wal and -shm, and start it again: the server refills the queue from \
             the database",
        },
        synchronous: "NORMAL",
    }
}

fn examine(subject: &CheckedFile, depth: Depth) -> ServerFinding {
    let path = subject.path.display();
    if !subject.path.exists() {
        return finding(subject.name, subject.missing, format!("{path} does not exist"));
    }
    match inspect(&subject.path, depth) {
        Ok(found) => judge(subject, &found, depth),
        Err(error) => {
            let advice = "run the doctor as the user of the server";
            ServerFinding::bad(subject.name, FindingHealth::Doubtful, format!("not read: {error}"), advice)
        }
    }
}

fn judge(subject: &CheckedFile, found: &Inspection, depth: Depth) -> ServerFinding {
    let path = subject.path.display();
    if !found.problems.is_empty() {
        let problems = found.problems.join("; ");
        return finding(subject.name, subject.damaged, format!("{path} is damaged: {problems}"));
    }
    if !found.is_wal {
        let advice = "start a server on it, which turns the log on, or says why it cannot: a network file system has none";
        return ServerFinding::bad(
            subject.name,
            FindingHealth::Doubtful,
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
    ServerFinding::good(subject.name, detail)
}

fn finding(subject: &'static str, problem: FileProblem, detail: String) -> ServerFinding {
    match problem.health {
        FindingHealth::Good => ServerFinding::good(subject, detail),
        health => ServerFinding::bad(subject, health, detail, problem.advice),
    }
}
