//! Topics and conditions over them: `'a' in topics && ('b' in topics || !('c' in topics))`.

mod condition;

pub use condition::{Condition, Expr};

use crate::name::TopicName;

/// A topic with its number of devices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicSummary {
    /// Its name.
    pub name: TopicName,
    /// Devices subscribed.
    pub device_count: u64,
}

#[cfg(test)]
mod tests;
