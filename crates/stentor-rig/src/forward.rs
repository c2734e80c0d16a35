//! Ways out of a rig: a port of the server's side that leads to a service elsewhere.

use crate::rig::Rig;
use crate::side::Side;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

/// Connections at once through one forward; more are closed.
const CONNECTIONS_MAX: usize = 256;

/// A forwarded port, until this is dropped. Open connections then continue.
#[derive(Debug)]
pub struct Forward {
    wake: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Forward {
    /// Forwards connections to this port of the server's side to `target` (a host and a port), as seen from the calling process.
    ///
    /// Each connection ends here and a second one continues, so that only the way up to here belongs to the link.
    pub fn open(rig: &Rig, port: u16, target: &str) -> io::Result<Self> {
        let address = SocketAddr::new(rig.address(Side::Server), port);
        let listener = crate::probe::join(rig.within(Side::Server, move || TcpListener::bind(address))?)?;
        listener.set_nonblocking(true)?;
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let (stop, target) = (Arc::clone(&wake), target.to_owned());
        // Started by us, not by the rig: it lives where the target is.
        let thread = thread::Builder::new()
            .name("rig-forward".to_owned())
            .spawn(move || accept(&listener, &stop, &target))?;
        Ok(Self { wake, thread: Some(thread) })
    }
}

impl Drop for Forward {
    fn drop(&mut self) {
        // Cannot fail: the counter is far from full.
        let _ = rustix::io::write(&*self.wake, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn accept(listener: &TcpListener, stop: &OwnedFd, target: &str) {
    let open = Arc::new(AtomicUsize::new(0));
    loop {
        let mut files = [PollFd::new(listener, PollFlags::IN), PollFd::new(stop, PollFlags::IN)];
        match poll(&mut files, None) {
            Ok(_) if files[1].revents().is_empty() => {}
            Err(rustix::io::Errno::INTR) => continue,
            _ => return,
        }
        let Ok((near, _)) = listener.accept() else { continue };
        if open.load(Ordering::Relaxed) >= CONNECTIONS_MAX {
            continue;
        }
        open.fetch_add(1, Ordering::Relaxed);
        let (open, target) = (Arc::clone(&open), target.to_owned());
        thread::spawn(move || {
            // On an error, the client at the near end sees the connection close.
            let _ = relay(&near, &target);
            open.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

fn relay(near: &TcpStream, target: &str) -> io::Result<()> {
    near.set_nonblocking(false)?;
    near.set_nodelay(true)?;
    let far = TcpStream::connect(target)?;
    far.set_nodelay(true)?;
    let (near_too, far_too) = (near.try_clone()?, far.try_clone()?);
    let back = thread::spawn(move || carry(&far_too, &near_too));
    carry(near, &far);
    // A copy that panicked has closed nothing more than one that ended.
    let _ = back.join();
    Ok(())
}

/// Copies until one end closes, and passes that on.
fn carry(mut from: &TcpStream, mut to: &TcpStream) {
    let _ = io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Write);
}
