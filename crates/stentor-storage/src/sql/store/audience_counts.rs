//! The number of devices that a target would reach now.

use stentor_core::device::ProviderKind;
use stentor_core::id::AppId;
use stentor_core::ports::store::AudienceCount;
use stentor_core::target::Target;

use super::app_providers::{self, AppProvider, fleet_of};
use super::{devices, targets};
use crate::sql::{Connection, Done, all, exists, params};

/// Returns true if a target's audience is counted in stretches.
pub(crate) const fn is_walked(target: &Target) -> bool {
    matches!(target, Target::Topic(_) | Target::Group(_) | Target::Condition(_) | Target::User(_))
}

/// Checks app and target; returns the fleets through which to walk.
pub(crate) fn begin_count(connection: &Connection, app: AppId, target: &Target) -> Done<Vec<AppProvider>> {
    app_providers::check_app(connection, app)?;
    targets::check_target(connection, app, target)?;
    app_providers::of_app(connection, app)
}

/// Counts, by provider, the devices that a target would reach now. For targets whose audience is not counted in stretches.
pub(crate) fn count(connection: &Connection, app: AppId, target: &Target) -> Done<Vec<AudienceCount>> {
    app_providers::check_app(connection, app)?;
    targets::check_target(connection, app, target)?;
    match target {
        Target::Everyone => devices::counts(connection, app),
        Target::Token(token) => {
            let fleet = app_providers::find(connection, app, token.provider)?;
            let holder = fleet.map(|fleet| connection.holder(fleet, &token.token)).transpose()?;
            // A token without a device counts as reached: the message creates a device for it.
            let reaches = holder.flatten().map_or(Ok(true), |key| is_unretired(connection, key))?;
            Ok(if reaches { vec![(token.provider, 1)] } else { Vec::new() })
        }
        named => count_named(connection, app, named),
    }
}

fn count_named(connection: &Connection, app: AppId, target: &Target) -> Done<Vec<AudienceCount>> {
    let keys = targets::named(connection, app, target)?;
    let is_named = connection.dialect().is_in("key", 1);
    let sql = format!("SELECT key FROM devices WHERE {is_named} AND retired_at IS NULL");
    let keys: Vec<i64> = all(connection, &sql, params![keys], |row| row.get(0))?;
    let mut counts = Vec::new();
    for fleet in app_providers::of_app(connection, app)? {
        let count = keys.iter().filter(|key| fleet_of(**key) == fleet.no).count();
        push(&mut counts, fleet.provider, count as u64);
    }
    Ok(counts)
}

/// Adds a count unless it is zero.
pub(crate) fn push(counts: &mut Vec<AudienceCount>, provider: ProviderKind, count: u64) {
    if count > 0 {
        counts.push((provider, count));
    }
}

fn is_unretired(connection: &Connection, key: i64) -> Done<bool> {
    exists(connection, "SELECT 1 FROM devices WHERE key = ?1 AND retired_at IS NULL", [key])
}
