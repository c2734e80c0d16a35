//! The table of this face: each operation's method and path.

use super::row::{RestRow, create, delete, get, patch, post, put};
use crate::contract::table::*;

/// Rows with a key, a place and a time limit.
pub(super) fn limited() -> Vec<RestRow> {
    [of_apps(), of_audiences(), of_sending()].into_iter().flatten().collect()
}

fn of_apps() -> Vec<RestRow> {
    vec![
        create::<CreateApp>("/v1/apps"),
        get::<ListApps>("/v1/apps"),
        get::<ShowApp>("/v1/apps/{app}"),
        delete::<DeleteApp>("/v1/apps/{app}"),
        create::<CreateKey>("/v1/apps/{app}/keys"),
        get::<ListKeys>("/v1/apps/{app}/keys"),
        delete::<DeleteKey>("/v1/apps/{app}/keys/{key}"),
        create::<CreateServiceAccount>("/v1/apps/{app}/service-accounts"),
        get::<ListServiceAccounts>("/v1/apps/{app}/service-accounts"),
        delete::<DeleteServiceAccount>("/v1/apps/{app}/service-accounts/{account}"),
        get::<ListCredentials>("/v1/apps/{app}/credentials"),
        put::<PutCredential>("/v1/apps/{app}/credentials/{provider}"),
        post::<CheckCredential>("/v1/apps/{app}/credentials/{provider}/check"),
        delete::<DeleteCredential>("/v1/apps/{app}/credentials/{provider}"),
        put::<PutUpstreamWebhook>("/v1/apps/{app}/upstream-webhook"),
        get::<ShowUpstreamWebhook>("/v1/apps/{app}/upstream-webhook"),
        delete::<DeleteUpstreamWebhook>("/v1/apps/{app}/upstream-webhook"),
    ]
}

fn of_audiences() -> Vec<RestRow> {
    vec![
        post::<RegisterDevice>("/v1/devices"),
        post::<RegisterDevices>("/v1/devices/bulk"),
        get::<ListDevices>("/v1/devices"),
        get::<ShowDevice>("/v1/devices/{device}"),
        put::<ReplaceDevice>("/v1/devices/{device}"),
        patch::<ChangeDevice>("/v1/devices/{device}"),
        delete::<RemoveDevice>("/v1/devices/{device}"),
        get::<ListDeviceTopics>("/v1/devices/{device}/topics"),
        put::<SubscribeDevice>("/v1/devices/{device}/topics/{topic}"),
        delete::<UnsubscribeDevice>("/v1/devices/{device}/topics/{topic}"),
        get::<ShowHistory>("/v1/devices/{device}/deliveries"),
        get::<ListUsers>("/v1/users"),
        put::<PutUser>("/v1/users/{external_id}"),
        get::<ShowUser>("/v1/users/{external_id}"),
        delete::<RemoveUser>("/v1/users/{external_id}"),
        get::<ListGroups>("/v1/groups"),
        put::<PutGroup>("/v1/groups/{group}"),
        get::<ShowGroup>("/v1/groups/{group}"),
        delete::<RemoveGroup>("/v1/groups/{group}"),
        get::<ListMembers>("/v1/groups/{group}/members"),
        post::<AddMembers>("/v1/groups/{group}/members"),
        post::<RemoveMembers>("/v1/groups/{group}/members/remove"),
        get::<ListTopics>("/v1/topics"),
        get::<ShowTopic>("/v1/topics/{topic}"),
        delete::<RemoveTopic>("/v1/topics/{topic}"),
        post::<Subscribe>("/v1/topics/{topic}/subscriptions"),
        post::<SubscribeMany>("/v1/subscriptions/bulk"),
        post::<Unsubscribe>("/v1/topics/{topic}/subscriptions/remove"),
    ]
}

fn of_sending() -> Vec<RestRow> {
    vec![
        post::<SendMessage>("/v1/messages"),
        post::<SendMessages>("/v1/messages/bulk"),
        get::<ListMessages>("/v1/messages"),
        get::<ShowMessage>("/v1/messages/{message}"),
        get::<ShowMessageLedger>("/v1/messages/{message}/ledger"),
        get::<ListMessageDeliveries>("/v1/messages/{message}/deliveries"),
        get::<ListDeliveries>("/v1/messages/{message}/deliveries/{device}"),
        get::<ListCampaigns>("/v1/campaigns"),
        get::<ShowCampaign>("/v1/campaigns/{campaign}"),
        post::<CancelCampaign>("/v1/campaigns/{campaign}/cancel"),
        post::<PauseCampaign>("/v1/campaigns/{campaign}/pause"),
        post::<ResumeCampaign>("/v1/campaigns/{campaign}/resume"),
        create::<CreateSchedule>("/v1/schedules"),
        get::<ListSchedules>("/v1/schedules"),
        get::<ShowSchedule>("/v1/schedules/{schedule}"),
        delete::<RemoveSchedule>("/v1/schedules/{schedule}"),
        post::<CancelSchedule>("/v1/schedules/{schedule}/cancel"),
        post::<PauseSchedule>("/v1/schedules/{schedule}/pause"),
        post::<ResumeSchedule>("/v1/schedules/{schedule}/resume"),
        create::<CreateProposal>("/v1/proposals"),
        get::<ListProposals>("/v1/proposals"),
        get::<ShowProposal>("/v1/proposals/{proposal}"),
        post::<ApproveProposal>("/v1/proposals/{proposal}/approve"),
        delete::<RemoveProposal>("/v1/proposals/{proposal}"),
        create::<CreateChannel>("/v1/live-activity-channels"),
        get::<ListChannels>("/v1/live-activity-channels"),
        delete::<RemoveChannel>("/v1/live-activity-channels/{channel}"),
        put::<PublishService>("/v1/services/{service}"),
        get::<ListServices>("/v1/services"),
        get::<ShowService>("/v1/services/{service}"),
        delete::<RemoveService>("/v1/services/{service}"),
    ]
}

/// Such rows for the operator.
pub(super) fn operator() -> Vec<RestRow> {
    vec![
        get::<ListAudit>("/v1/audit"),
        get::<ShowStatus>("/v1/status"),
        get::<ListNodes>("/v1/nodes"),
        get::<ListSettings>("/v1/settings"),
    ]
}

/// Such rows for upstream messages.
pub(super) fn upstream() -> Vec<RestRow> {
    vec![
        get::<ListUpstream>("/v1/upstream/messages"),
        post::<AcknowledgeUpstream>("/v1/upstream/acknowledge"),
        get::<ListDeadLetters>("/v1/upstream/dead-letters"),
        post::<RetryDeadLetters>("/v1/upstream/dead-letters/retry"),
    ]
}

/// Rows with limits of their own.
pub(super) fn open() -> Vec<RestRow> {
    vec![post::<ImportDevices>("/v1/devices/import")]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Routes of this face that are not in the contract: those without a key, and events.
    const BESIDE: [&str; 2] = ["health.", "upstream.events"];

    #[test]
    fn every_operation_of_the_contract_has_a_row_and_every_row_an_operation() {
        let rows: BTreeSet<_> = super::super::openapi::addresses().keys().cloned().collect();
        let known: BTreeSet<_> = OPERATIONS.iter().map(|facts| facts.name.to_owned()).collect();
        let missing: Vec<_> = known.difference(&rows).collect();
        assert!(missing.is_empty(), "without a row: {missing:?}");
        let is_beside = |name: &String| BESIDE.iter().any(|beside| name.starts_with(beside));
        let unknown: Vec<_> = rows.difference(&known).filter(|name| !is_beside(name)).collect();
        assert!(unknown.is_empty(), "not in the contract: {unknown:?}");
    }
}
