//! The roles of a node: all of them, unless some are configured.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;

/// One role of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeRole {
    /// Serves the API.
    Api,
    /// Begins due messages, fires schedules, and sends upstream messages to webhooks.
    Scheduler,
    /// Expands audiences.
    Producer,
    /// Leases chunks and sends them.
    Consumer,
    /// Serves devices.
    Gateway,
}

impl NodeRole {
    /// All roles.
    pub const ALL: [Self; 5] = [Self::Api, Self::Scheduler, Self::Producer, Self::Consumer, Self::Gateway];

    /// Returns the name of the role.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Scheduler => "scheduler",
            Self::Producer => "producer",
            Self::Consumer => "consumer",
            Self::Gateway => "gateway",
        }
    }
}

impl FromStr for NodeRole {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|role| role.name() == text);
        known.ok_or_else(|| format!("{text:?} is no role: api, scheduler, producer, consumer or gateway"))
    }
}

impl fmt::Display for NodeRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The roles of a node; an empty list means all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct NodeRoles(Vec<NodeRole>);

impl NodeRoles {
    /// Creates a set of roles; an empty list means all.
    #[must_use]
    pub const fn of(named: Vec<NodeRole>) -> Self {
        Self(named)
    }

    /// Returns true if the node has the role.
    #[must_use]
    pub fn has(&self, role: NodeRole) -> bool {
        self.0.is_empty() || self.0.contains(&role)
    }

    /// Lists the names of the roles that the node has.
    #[must_use]
    pub fn names(&self) -> Vec<&'static str> {
        NodeRole::ALL.into_iter().filter(|role| self.has(*role)).map(NodeRole::name).collect()
    }

    /// Returns true if the node has all roles.
    #[must_use]
    pub fn are_all(&self) -> bool {
        NodeRole::ALL.into_iter().all(|role| self.has(role))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_has_every_role_unless_some_are_named() {
        let (all, some) = (NodeRoles::default(), NodeRoles::of(vec![NodeRole::Api, NodeRole::Gateway]));
        assert!(all.are_all() && !some.are_all());
        assert_eq!((some.has(NodeRole::Api), some.has(NodeRole::Consumer)), (true, false));
        assert_eq!((all.names().len(), some.names()), (5, vec!["api", "gateway"]));
        for role in NodeRole::ALL {
            assert_eq!(role.name().parse::<NodeRole>(), Ok(role));
        }
        assert!("sender".parse::<NodeRole>().expect_err("unknown").contains("consumer"));
    }
}
