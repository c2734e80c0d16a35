//! What all share: places and bytes. Each owner has a part, and whoever has no name has one that is apart from all others'.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use stentor_core::id::AppId;
use tokio::sync::Notify;

use crate::owner::Owner;

/// Which part of an app's share one of its devices or guests has.
const PART_OF_APP: usize = 16;
/// How much there is, beside all that is for apps, for those without a name: this part of it.
const NAMELESS_PART: usize = 16;
/// Which part of what the nameless have one address has.
const ADDRESS_PART: usize = 4;
/// The floor of the nameless, where that of the apps is larger: the largest body that is read without a key.
const NAMELESS_FLOOR_MAX: usize = 64 * 1_024;

/// Why nothing more can be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShareExhausted {
    /// All is taken that apps share. Nobody without a name is told that, or brings it about.
    All,
    /// The app has taken its share.
    App,
    /// The device or guest has taken its part of the app's share, or all of them together theirs.
    Part,
    /// The address has taken its part of what is for the nameless.
    Address,
    /// All is taken that is for the nameless.
    Nameless,
}

impl ShareExhausted {
    /// Returns whose part it is, to stand behind the name of what is taken.
    #[must_use]
    pub const fn whose(self) -> &'static str {
        match self {
            Self::All => "",
            Self::App => " of this app",
            Self::Part => " of this device, or of all who speak for the app without being its server,",
            Self::Address => " of this address without a key",
            Self::Nameless => " without a key",
        }
    }
}

/// A fixed amount of something, and who has taken how much of it.
///
/// With a share of 50 per cent one busy app takes a half, two take a third each, and there is always something left for the next.
/// Devices and guests of an app have a sixteenth of its share each, and together a half of it. Those without a name share a
/// sixteenth that lies beside the total, of which one address has a quarter.
#[derive(Debug)]
pub struct Shares {
    total: usize,
    app_share_percent: usize,
    /// What an app may take whatever the others have, if so much is left.
    floor: usize,
    nameless_total: usize,
    nameless_floor: usize,
    taken: Mutex<TakenAmounts>,
    given_back: Notify,
}

#[derive(Debug, Default)]
struct TakenAmounts {
    /// By all who have a name.
    all: usize,
    nameless: usize,
    by_app: HashMap<AppId, AppAmounts>,
    by_owner: HashMap<Owner, usize>,
}

/// Amounts by app.
#[derive(Debug, Default, Clone, Copy)]
struct AppAmounts {
    all: usize,
    /// By its devices and guests.
    parts: usize,
}

/// A part that was taken; it is given back when it is dropped.
#[derive(Debug)]
pub struct SharePart {
    shares: Arc<Shares>,
    owner: Owner,
    amount: usize,
}

impl Shares {
    /// Has so much, of which one app takes at most the given share of what others leave, or the floor.
    #[must_use]
    pub fn new(total: usize, app_share_percent: usize, floor: usize) -> Arc<Self> {
        Self::with_nameless(total, app_share_percent, floor, total / NAMELESS_PART)
    }

    /// Has so much for those without a name, and nothing for others.
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

    /// Takes nothing yet, in somebody's name.
    #[must_use]
    pub fn part(self: &Arc<Self>, owner: impl Into<Owner>) -> SharePart {
        SharePart { shares: self.clone(), owner: owner.into(), amount: 0 }
    }

    /// Takes so much in somebody's name.
    pub fn take(
        self: &Arc<Self>,
        owner: impl Into<Owner>,
        amount: usize,
    ) -> Result<SharePart, ShareExhausted> {
        let mut part = self.part(owner);
        part.grow(amount)?;
        Ok(part)
    }

    /// Takes so much in somebody's name as soon as that is there; whoever waits says for how long.
    pub async fn taken_when_there(self: &Arc<Self>, owner: impl Into<Owner>, amount: usize) -> SharePart {
        let owner = owner.into();
        loop {
            let mut given_back = std::pin::pin!(self.given_back.notified());
            // Before the look: what is given back between wakes it.
            given_back.as_mut().enable();
            match self.take(owner, amount) {
                Ok(part) => return part,
                Err(_) => given_back.await,
            }
        }
    }

    /// Returns how much is taken.
    #[must_use]
    pub fn taken(&self) -> usize {
        let taken = self.lock();
        taken.all + taken.nameless
    }

    /// Returns how much is taken by those without a name.
    #[must_use]
    pub fn taken_by_nameless(&self) -> usize {
        self.lock().nameless
    }

    fn lock(&self) -> MutexGuard<'_, TakenAmounts> {
        self.taken.lock()
    }

    /// Returns how much an app may have when the others have so much.
    fn most(&self, others: usize) -> usize {
        let left = self.total.saturating_sub(others);
        let share = left / 100 * self.app_share_percent + left % 100 * self.app_share_percent / 100;
        share.max(self.floor)
    }

    /// Returns whether an owner may take so much more.
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
    /// Takes so much more, or nothing.
    pub fn grow(&mut self, amount: usize) -> Result<(), ShareExhausted> {
        let mut taken = self.shares.lock();
        self.shares.allows(&taken, self.owner, amount)?;
        taken.add(self.owner, amount);
        self.amount += amount;
        Ok(())
    }

    /// Counts what is there already, so much altogether, also where that is more than may be taken: the next one is refused for it.
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

    /// Takes the same in another's name, or leaves it where it is.
    pub fn pass_to(&mut self, owner: Owner) -> Result<(), ShareExhausted> {
        if self.owner != owner {
            *self = self.shares.take(owner, self.amount)?;
        }
        Ok(())
    }

    /// Returns how much it is.
    #[must_use]
    pub const fn amount(&self) -> usize {
        self.amount
    }
}

impl Drop for SharePart {
    fn drop(&mut self) {
        // Nothing of nothing: whoever waits drops an empty part at each look, and would wake itself for ever.
        if self.amount == 0 {
            return;
        }
        self.shares.lock().remove(self.owner, self.amount);
        self.shares.given_back.notify_waiters();
    }
}
