//! Roles of the nodes of a cluster.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::str::FromStr;

const ROLES: [&str; 5] = ["api", "gateway", "scheduler", "producer", "consumer"];
const API: &str = ROLES[0];
const GATEWAY: &str = ROLES[1];
const CONSUMER: &str = ROLES[4];

/// Distribution of roles over nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RoleMix {
    /// Each node does everything.
    #[default]
    All,
    /// The first node serves the API and devices, the others have the other roles.
    Mixed,
    /// Drawn from the seed: each role at one node at least, the API at the first one.
    Drawn,
}

/// The roles of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClusterRoles(Vec<&'static str>);

impl RoleMix {
    const ALL: [Self; 3] = [Self::All, Self::Mixed, Self::Drawn];

    /// Its name on the command line and in reports.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Mixed => "mixed",
            Self::Drawn => "drawn",
        }
    }

    /// Returns the roles of each of `nodes` nodes.
    pub(crate) fn spread(self, nodes: u32, seed: u64) -> Vec<ClusterRoles> {
        match self {
            Self::All => (0..nodes).map(|_| ClusterRoles(ROLES.to_vec())).collect(),
            Self::Mixed => (0..nodes).map(mixed).collect(),
            Self::Drawn => drawn(nodes, seed),
        }
    }
}

impl FromStr for RoleMix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words = || Self::ALL.map(Self::word).join(", ");
        Self::ALL
            .into_iter()
            .find(|mix| mix.word() == text)
            .ok_or_else(|| format!("it is one of {}", words()))
    }
}

impl ClusterRoles {
    /// Returns true if it serves the API.
    pub(crate) fn has_api(&self) -> bool {
        self.0.contains(&API)
    }

    /// Returns true if it serves devices.
    pub(crate) fn has_gateway(&self) -> bool {
        self.0.contains(&GATEWAY)
    }

    /// Returns true if it sends to push services.
    pub(crate) fn has_consumer(&self) -> bool {
        self.0.contains(&CONSUMER)
    }

    /// The words of the roles in a configuration.
    pub(crate) fn words(&self) -> &[&'static str] {
        &self.0
    }
}

fn mixed(place: u32) -> ClusterRoles {
    let (serving, working) = ROLES.split_at(2);
    ClusterRoles(if place == 0 { serving.to_vec() } else { working.to_vec() })
}

fn drawn(nodes: u32, seed: u64) -> Vec<ClusterRoles> {
    let mut dice = StdRng::seed_from_u64(seed);
    let mut spread: Vec<Vec<&'static str>> = vec![Vec::new(); nodes as usize];
    for role in ROLES {
        let sure = if role == API { 0 } else { dice.random_range(0..nodes as usize) };
        for (place, roles) in spread.iter_mut().enumerate() {
            if place == sure || dice.random_bool(0.5) {
                roles.push(role);
            }
        }
    }
    // Each node has a role.
    for roles in spread.iter_mut().filter(|roles| roles.is_empty()) {
        roles.push(CONSUMER);
    }
    spread.into_iter().map(ClusterRoles).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_is_somewhere_and_the_api_at_the_first_node_whatever_the_seed() {
        for mix in RoleMix::ALL {
            for seed in 0..50 {
                let spread = mix.spread(3, seed);
                assert_eq!(spread, mix.spread(3, seed));
                assert!(spread[0].has_api(), "{mix:?} {seed}");
                for role in ROLES {
                    assert!(
                        spread.iter().any(|roles| roles.words().contains(&role)),
                        "{mix:?} {seed} {role}"
                    );
                }
                assert!(spread.iter().all(|roles| !roles.words().is_empty()), "{mix:?} {seed}");
            }
            assert_eq!(mix.word().parse(), Ok(mix));
        }
        assert_ne!(RoleMix::Drawn.spread(3, 1), RoleMix::Drawn.spread(3, 2));
    }
}
