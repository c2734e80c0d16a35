//! The two lines in which jobs wait for the thread that writes: those somebody waits for, and all others.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Which line a job waits in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sqlite) enum Line {
    /// A caller, or one device, waits for it.
    First,
    /// It moves audiences.
    Usual,
}

/// Both lines, and the places in them.
pub(super) struct Lines<J> {
    state: Mutex<State<J>>,
    arrived: Condvar,
    places: Arc<Semaphore>,
}

struct State<J> {
    first: VecDeque<Waiting<J>>,
    usual: VecDeque<Waiting<J>>,
    closed: bool,
}

struct Waiting<J> {
    job: J,
    /// Given back once the job leaves the line.
    _place: OwnedSemaphorePermit,
}

impl<J> Lines<J> {
    /// Makes lines with so many places in both together.
    pub(super) fn new(places: usize) -> Self {
        let state = State { first: VecDeque::new(), usual: VecDeque::new(), closed: false };
        let places = Arc::new(Semaphore::new(places.clamp(1, Semaphore::MAX_PERMITS)));
        Self { state: Mutex::new(state), arrived: Condvar::new(), places }
    }

    /// Puts a job in a line, waiting for a place; gives it back when the lines are closed.
    pub(super) async fn push(&self, line: Line, job: J) -> Result<(), J> {
        let Ok(place) = self.places.clone().acquire_owned().await else { return Err(job) };
        let mut state = self.lock();
        if state.closed {
            return Err(job);
        }
        state.line(line).push_back(Waiting { job, _place: place });
        drop(state);
        self.arrived.notify_one();
        Ok(())
    }

    /// Waits for a job and takes it, from the preferred line if there is one; `None` once they are closed and empty.
    pub(super) fn take(&self, preferred: Line) -> Option<(Line, J)> {
        let mut state = self.lock();
        loop {
            let other = if preferred == Line::First { Line::Usual } else { Line::First };
            for line in [preferred, other] {
                if let Some(waiting) = state.line(line).pop_front() {
                    return Some((line, waiting.job));
                }
            }
            if state.closed {
                return None;
            }
            state = self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Takes a job from a line if there is one.
    pub(super) fn try_take(&self, line: Line) -> Option<J> {
        self.lock().line(line).pop_front().map(|waiting| waiting.job)
    }

    /// Lets nobody in any more; those that wait are still taken.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.places.close();
        self.arrived.notify_all();
    }

    /// Closes the lines and sends everybody away.
    pub(super) fn abandon(&self) {
        self.close();
        let (first, usual) = {
            let mut state = self.lock();
            (std::mem::take(&mut state.first), std::mem::take(&mut state.usual))
        };
        drop((first, usual));
    }

    fn lock(&self) -> MutexGuard<'_, State<J>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<J> State<J> {
    fn line(&mut self, line: Line) -> &mut VecDeque<Waiting<J>> {
        match line {
            Line::First => &mut self.first,
            Line::Usual => &mut self.usual,
        }
    }
}
