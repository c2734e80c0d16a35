//! Frames on sockets: a task for each connection, or two threads for each, one that receives and one that sends.

use super::super::SubjectError;
use super::{CONNECTIONS_MAX, Question, ServerWork};
use crate::subject::setup::Stream;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use stentor_wire::frame::{self, Frames};
use stentor_wire::{DocumentLimits, WireError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Bytes per read.
const READ_BYTES: usize = 64 << 10;
/// Responses queued for the sending thread before the receiving thread blocks.
const WAITING_ANSWERS: usize = 16;

/// A listener on its own thread.
pub(super) struct ListenerThread {
    pub(super) address: SocketAddr,
    stopped: Arc<AtomicBool>,
}

impl ListenerThread {
    pub(super) fn start(bind: SocketAddr, work: ServerWork) -> Result<Self, SubjectError> {
        let listener = TcpListener::bind(bind).map_err(SubjectError::io(format!("listening on {bind}")))?;
        let address = listener.local_addr().map_err(SubjectError::io("listening"))?;
        let stopped = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&stopped);
        std::thread::spawn(move || accept(&listener, &work, &until));
        Ok(Self { address, stopped })
    }

    /// Stops accepting connections; open ones end when their clients hang up.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        // The listener blocks in accept; a connection wakes it.
        let _ = TcpStream::connect(self.address);
    }
}

fn accept(listener: &TcpListener, work: &ServerWork, stopped: &AtomicBool) {
    let open = Arc::new(AtomicUsize::new(0));
    while let Ok((stream, _)) = listener.accept() {
        if stopped.load(Ordering::SeqCst) {
            return;
        }
        if open.load(Ordering::SeqCst) < CONNECTIONS_MAX {
            open.fetch_add(1, Ordering::SeqCst);
            let (work, open) = (work.clone(), Arc::clone(&open));
            std::thread::spawn(move || {
                serve_connection(stream, &work);
                open.fetch_sub(1, Ordering::SeqCst);
            });
        }
    }
}

/// Receives on this thread and sends on another one.
fn serve_connection(stream: TcpStream, work: &ServerWork) {
    work.connected();
    let _ = stream.set_nodelay(true);
    let Ok(sending) = stream.try_clone() else { return };
    let (answers, waiting) = sync_channel(WAITING_ANSWERS);
    let sender = std::thread::spawn(move || send(sending, &waiting));
    receive(stream, work, &answers);
    drop(answers);
    let _ = sender.join();
}

fn receive(mut stream: TcpStream, work: &ServerWork, answers: &SyncSender<Vec<u8>>) {
    let mut frames = Frames::new(DocumentLimits::default());
    let mut buffer = vec![0; READ_BYTES];
    while let Ok(read @ 1..) = stream.read(&mut buffer) {
        frames.feed(&buffer[..read]);
        loop {
            match frames.frame() {
                Ok(Some(request)) => {
                    let Some(answer) = work.answer(Question::Body(&request)) else { continue };
                    let Ok(framed) = framed(answer) else { return };
                    if answers.send(framed).is_err() {
                        return;
                    }
                }
                Ok(None) => break,
                Err(_) => return,
            }
        }
    }
}

fn send(mut stream: TcpStream, waiting: &Receiver<Vec<u8>>) {
    while let Ok(frame) = waiting.recv() {
        if stream.write_all(&frame).is_err() {
            return;
        }
    }
}

/// Frames a response; a request without a response gets an empty frame. What fits into no frame ends the connection.
fn framed(answer: Result<Vec<u8>, Vec<u8>>) -> Result<Vec<u8>, WireError> {
    frame::write(&answer.unwrap_or_default())
}

/// Serves one client over frames until it hangs up.
pub(super) async fn speak_frames(mut stream: Stream, work: ServerWork) {
    let mut frames = Frames::new(DocumentLimits::default());
    let mut buffer = vec![0; READ_BYTES];
    while let Ok(read @ 1..) = stream.read(&mut buffer).await {
        frames.feed(&buffer[..read]);
        loop {
            match frames.frame() {
                Ok(Some(request)) => {
                    let Some(answer) = work.answer(Question::Body(&request)) else { continue };
                    let Ok(framed) = framed(answer) else { return };
                    if stream.write_all(&framed).await.is_err() {
                        return;
                    }
                }
                Ok(None) => break,
                Err(_) => return,
            }
        }
    }
}
