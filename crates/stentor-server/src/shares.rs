//! Shared resources: places and bytes. Each owner has a part, and callers without authentication have a separate pool.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use stentor_core::id::AppId;
use tokio::sync::Notify;

use crate::owner::Owner;

/// Divisor: an app's share by this is the part of one of its devices or guests.
const PART_OF_APP: usize = 16;
/// Divisor: the total by this is the separate pool of unauthenticated callers.
const NAMELESS_PART: usize = 16;
/// Divisor: that pool by this is the part of one address.
const ADDRESS_PART: usize = 4;
/// The upper limit of the floor of unauthenticated callers: the largest body that is read without a key.
const NAMELESS_FLOOR_MAX: usize = 64 * 1_024;

/// The limit that was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShareExhausted {
    /// The total of all apps. An unauthenticated caller never causes or receives this.
    All,
    /// The app's share.
    App,
    /// The part of the device or guest in the app's share, or the part of all of them together.
    Part,
    /// The part of the address in the unauthenticated pool.
    Address,
    /// The unauthenticated pool.
    Nameless,
}

impl ShareExhausted {
    /// Returns the owner of the exhausted part as a phrase, to follow the name of the resource.
    #[must_use]
    pub const fn whose(self) -> &'static str {
        match self {
            Self::All => "",
            Self::App => " of this app",
            Self::Part => " of this device, or of all devices and guests of the app together,",
            Self::Address => " of this address without a key",
            Self::Nameless => " without a key",
        }
    }
}

/// A fixed amount of a resource, and the amounts that its owners have taken.
///
/// With a share of 50 per cent one busy app takes a half, two take a third each, and there is always a rest for the next. Devices and
/// guests of an app have a sixteenth of its share each, and together a half of it. Unauthenticated callers share a separate sixteenth
/// beside the total; one address has a quarter of it.
#[derive(Debug)]
pub struct Shares {
    total: usize,
    app_share_percent: usize,
    /// Amount that an app may take beyond its share, if that is left.
    floor: usize,
    nameless_total: usize,
    nameless_floor: usize,
    taken: Mutex<TakenAmounts>,
    given_back: Notify,
}

#[derive(Debug, Default)]
struct TakenAmounts {
    /// Taken by all authenticated owners.
    all: usize,
    nameless: usize,
    by_app: HashMap<AppId, AppAmounts>,
    by_owner: HashMap<Owner, usize>,
}

/// Amounts by app.
#[derive(Debug, Default, Clone, Copy)]
struct AppAmounts {
    all: usize,
    /// Taken by its devices and guests.
    parts: usize,
}

/// A part that was taken; dropping it gives it back.
#[derive(Debug)]
pub struct SharePart {
    shares: Arc<Shares>,
    owner: Owner,
    amount: usize,
}

impl Shares {
    /// Creates a resource of this total. One app takes at most the given share of the remainder that others leave, or the floor.
    #[must_use]
    pub fn new(total: usize, app_share_percent: usize, floor: usize) -> Arc<Self> {
        Self::with_nameless(total, app_share_percent, floor, total / NAMELESS_PART)
    }

    /// Creates a resource for unauthenticated callers only.
    #[must_use]
    pub fn of_nameless(total: usize) -> Arc<Self> {
        Self::with_nameless(0, 0, 1, total)
    }

    fn with_nameless(total: usize, app_share_percent: usize, floor: usize, nameless: usize) -> Arc<Self> {
        let nameless_floor = floor.min(NAMELESS_FLOOR_MAX);
        Arc::new(Self {
            total,
            app_share_percent,
            floor,
            nameless_total: nameless.max(nameless_floor),
            nameless_floor,
            taken: Mutex::default(),
            given_back: Notify::new(),
        })
    }

    /// Returns an empty part of an owner.
    #[must_use]
    pub fn part(self: &Arc<Self>, owner: impl Into<Owner>) -> SharePart {
        SharePart { shares: self.clone(), owner: owner.into(), amount: 0 }
    }

    /// Takes an amount for an owner.
    pub fn take(
        self: &Arc<Self>,
        owner: impl Into<Owner>,
        amount: usize,
    ) -> Result<SharePart, ShareExhausted> {
        let mut part = self.part(owner);
        part.grow(amount)?;
        Ok(part)
    }

    /// Waits until the amount is available and takes it for an owner. The caller limits the wait.
    pub async fn taken_when_there(self: &Arc<Self>, owner: impl Into<Owner>, amount: usize) -> SharePart {
        let owner = owner.into();
        loop {
            let mut given_back = std::pin::pin!(self.given_back.notified());
            // Before the attempt, so that amounts given back in between wake it.
            given_back.as_mut().enable();
            match self.take(owner, amount) {
                Ok(part) => return part,
                Err(_) => given_back.await,
            }
        }
    }

    /// Returns the amount taken.
    #[must_use]
    pub fn taken(&self) -> usize {
        let taken = self.lock();
        taken.all + taken.nameless
    }

    /// Returns the amount taken by unauthenticated callers.
    #[must_use]
    pub fn taken_by_nameless(&self) -> usize {
        self.lock().nameless
    }

    fn lock(&self) -> MutexGuard<'_, TakenAmounts> {
        self.taken.lock()
    }

    /// Returns the most that an app may hold, given the amount held by the others.
    fn most(&self, others: usize) -> usize {
        let left = self.total.saturating_sub(others);
        let share = left / 100 * self.app_share_percent + left % 100 * self.app_share_percent / 100;
        share.max(self.floor)
    }

    /// Fails if an owner may not take this additional amount.
    fn allows(&self, taken: &TakenAmounts, owner: Owner, more: usize) -> Result<(), ShareExhausted> {
        let mine = taken.by_owner.get(&owner).copied().unwrap_or_default().saturating_add(more);
        if matches!(owner, Owner::Address(_)) {
            return self.allows_nameless(taken.nameless.saturating_add(more), mine);
        }
        if more > self.total.saturating_sub(taken.all) {
            return Err(ShareExhausted::All);
        }
        let Some(app) = owner.app() else { return Ok(()) };
        let of_app = taken.by_app.get(&app).copied().unwrap_or_default();
        let most = self.most(taken.all - of_app.all);
        if of_app.all.saturating_add(more) > most {
            return Err(ShareExhausted::App);
        }
        let has_part = |amount: usize, part: usize| amount <= (most / part).max(self.floor);
        let fits = !owner.is_part_of_app()
            || (has_part(mine, PART_OF_APP) && has_part(of_app.parts.saturating_add(more), 2));
        fits.then_some(()).ok_or(ShareExhausted::Part)
    }

    const fn allows_nameless(&self, all: usize, mine: usize) -> Result<(), ShareExhausted> {
        let part = self.nameless_total / ADDRESS_PART;
        let most = if part > self.nameless_floor { part } else { self.nameless_floor };
        match (mine <= most, all <= self.nameless_total) {
            (false, _) => Err(ShareExhausted::Address),
            (true, false) => Err(ShareExhausted::Nameless),
            (true, true) => Ok(()),
        }
    }
}

impl TakenAmounts {
    fn add(&mut self, owner: Owner, amount: usize) {
        if amount == 0 {
            return;
        }
        *self.by_owner.entry(owner).or_default() += amount;
        match owner {
            Owner::Address(_) => self.nameless += amount,
            _ => self.all += amount,
        }
        if let Some(app) = owner.app() {
            let of_app = self.by_app.entry(app).or_default();
            of_app.all += amount;
            of_app.parts += if owner.is_part_of_app() { amount } else { 0 };
        }
    }

    fn remove(&mut self, owner: Owner, amount: usize) {
        if amount == 0 {
            return;
        }
        match owner {
            Owner::Address(_) => self.nameless -= amount,
            _ => self.all -= amount,
        }
        if let Some(mine) = self.by_owner.get_mut(&owner) {
            *mine -= amount;
            if *mine == 0 {
                self.by_owner.remove(&owner);
            }
        }
        if let Some((app, of_app)) = owner.app().and_then(|app| Some((app, self.by_app.get_mut(&app)?))) {
            of_app.all -= amount;
            of_app.parts -= if owner.is_part_of_app() { amount } else { 0 };
            if of_app.all == 0 {
                self.by_app.remove(&app);
            }
        }
    }
}

impl SharePart {
    /// Takes an additional amount, all of it or nothing.
    pub fn grow(&mut self, amount: usize) -> Result<(), ShareExhausted> {
        let mut taken = self.shares.lock();
        self.shares.allows(&taken, self.owner, amount)?;
        taken.add(self.owner, amount);
        self.amount += amount;
        Ok(())
    }

    /// Sets the amount to one that is already in use, even beyond the limits; later takers are refused because of it.
    pub fn count(&mut self, amount: usize) {
        let mut taken = self.shares.lock();
        taken.remove(self.owner, self.amount);
        taken.add(self.owner, amount);
        let has_less = amount < self.amount;
        self.amount = amount;
        drop(taken);
        if has_less {
            self.shares.given_back.notify_waiters();
        }
    }

    /// Charges the amount to another owner; if that fails, the owner stays the same.
    pub fn pass_to(&mut self, owner: Owner) -> Result<(), ShareExhausted> {
        if self.owner != owner {
            *self = self.shares.take(owner, self.amount)?;
        }
        Ok(())
    }

    /// Returns the amount of this part.
    #[must_use]
    pub const fn amount(&self) -> usize {
        self.amount
    }
}

impl Drop for SharePart {
    fn drop(&mut self) {
        // An empty part wakes no waiters: a waiter drops one at each attempt, and would wake itself forever.
        if self.amount == 0 {
            return;
        }
        self.shares.lock().remove(self.owner, self.amount);
        self.shares.given_back.notify_waiters();
    }
}
