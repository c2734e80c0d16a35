//! What all apps share: places and bytes, of which one app takes at most a part of what the others leave.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use stentor_core::id::AppId;

/// Why nothing more can be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShareExhausted {
    /// All is taken.
    All,
    /// The app has taken its part.
    App,
}

/// A fixed amount of something, and who has taken how much of it.
///
/// With a share of 50 per cent one busy app takes a half, two take a third each, and there is always something left for the next.
#[derive(Debug)]
pub struct Shares {
    total: usize,
    app_share_percent: usize,
    /// What an app may take whatever the others have, if so much is left.
    floor: usize,
    taken: Mutex<TakenAmounts>,
}

#[derive(Debug, Default)]
struct TakenAmounts {
    all: usize,
    by_app: HashMap<AppId, usize>,
}

/// A part that was taken; it is given back when it is dropped.
#[derive(Debug)]
pub struct SharePart {
    shares: Arc<Shares>,
    app: Option<AppId>,
    amount: usize,
}

impl Shares {
    /// Has so much, of which one app takes at most the given share of what others leave, or the floor.
    #[must_use]
    pub fn new(total: usize, app_share_percent: usize, floor: usize) -> Arc<Self> {
        Arc::new(Self { total, app_share_percent, floor, taken: Mutex::default() })
    }

    /// Takes nothing yet, in the name of an app or of the operator.
    #[must_use]
    pub fn part(self: &Arc<Self>, app: Option<AppId>) -> SharePart {
        SharePart { shares: self.clone(), app, amount: 0 }
    }

    /// Takes so much in the name of an app or of the operator.
    pub fn take(self: &Arc<Self>, app: Option<AppId>, amount: usize) -> Result<SharePart, ShareExhausted> {
        let mut part = self.part(app);
        part.grow(amount)?;
        Ok(part)
    }

    /// Returns how much is taken.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.lock().all
    }

    fn lock(&self) -> MutexGuard<'_, TakenAmounts> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how much an app may have when the others have so much.
    fn most(&self, others: usize) -> usize {
        let left = self.total.saturating_sub(others);
        let share = left / 100 * self.app_share_percent + left % 100 * self.app_share_percent / 100;
        share.max(self.floor)
    }
}

impl SharePart {
    /// Takes so much more, or nothing.
    pub fn grow(&mut self, amount: usize) -> Result<(), ShareExhausted> {
        let mut taken = self.shares.lock();
        if amount > self.shares.total.saturating_sub(taken.all) {
            return Err(ShareExhausted::All);
        }
        if let Some(app) = self.app {
            let mine = taken.by_app.get(&app).copied().unwrap_or_default();
            if mine + amount > self.shares.most(taken.all - mine) {
                return Err(ShareExhausted::App);
            }
            *taken.by_app.entry(app).or_default() += amount;
        }
        taken.all += amount;
        self.amount += amount;
        Ok(())
    }
}

impl Drop for SharePart {
    fn drop(&mut self) {
        let mut taken = self.shares.lock();
        taken.all -= self.amount;
        let Some(app) = self.app else { return };
        if let Some(mine) = taken.by_app.get_mut(&app) {
            *mine -= self.amount;
            if *mine == 0 {
                taken.by_app.remove(&app);
            }
        }
    }
}
