//! Providers by app and kind, with the breakers and quotas in front of them.

mod check;
mod circuit_breaker;
mod closed_totals;
mod factory;
mod handle;
mod key;
mod levels;
mod pictures;
mod quota_share;
mod rate_limiter;
mod table;

pub use check::CheckFailure;
pub(crate) use circuit_breaker::{BreakerRules, BreakerState, Verdict};
pub use factory::ProviderFactory;
pub(crate) use handle::LentProvider;
pub(crate) use handle::ProviderHandle;
pub(crate) use key::ProviderKey;
pub(crate) use levels::Levels;
pub(crate) use rate_limiter::RateLimiterRules;
pub(crate) use table::{Grant, Probe, ProviderTable};
