//! Device groups: `create`, `add`, `remove` and the look-up of a `notification_key`. They are groups of ours. The key is an encoding of the
//! group's name in letters that are valid everywhere, so that no mapping is stored.

use axum::Json;
use axum::extract::{Query, Request, State};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::{Value, json};
use stentor_core::device::PushToken;
use stentor_core::id::DeviceId;
use stentor_core::name::GroupName;

use super::multicast::refused;
use super::reply::SendReply;
use super::{authenticate, read};
use crate::contract::groups::MembersRequest;
use crate::contract::messages::{MessageRequest, TargetRequest};
use crate::contract::table::{ListMembers, PutGroup, RemoveMembers, ShowGroup};
use crate::contract::{After, Caller, ErrorCode, Problem, Serve, ServiceResult};
use crate::face::Api;
use crate::face::http::auth::AuthenticatedCaller;
use crate::face::http::refusal::Refusal;
use crate::front::nulls::decode_without_nulls;
use crate::front::sending::{DEFAULT_ROUTE, Sender, TokenStanding};

/// Marks refusals of this part, which are JSON.
pub(super) const FIELD: &str = "notification_key";
/// Most members of a group, as documented.
const MEMBERS_MAX_COUNT: usize = 20;
const KEY_PREFIX: &str = "stentor-group.";

/// A change of a group.
#[derive(Deserialize)]
struct GroupChange {
    operation: String,
    #[serde(default)]
    notification_key_name: Option<String>,
    #[serde(default)]
    notification_key: Option<String>,
    #[serde(default)]
    registration_ids: Vec<String>,
}

/// The look-up of a group's key.
#[derive(Deserialize)]
pub(super) struct KeyQuery {
    notification_key_name: String,
}

/// A group under change in an app's name.
struct Changing<'a> {
    api: &'a Api,
    caller: Caller,
    group: GroupName,
}

/// Returns true if a text is the key of a group, not a token.
pub(in crate::front) fn is_key(text: &str) -> bool {
    text.starts_with(KEY_PREFIX)
}

/// Returns the key of a group by its name.
pub(super) async fn look_up(
    State(api): State<Api>,
    Query(query): Query<KeyQuery>,
    request: Request,
) -> Result<Json<Value>, Refusal> {
    let (parts, _) = request.into_parts();
    let AuthenticatedCaller { caller, .. } = authenticate(&parts, &api).await?;
    let group = named(query.notification_key_name)?;
    Changing { api: &api, caller, group: group.clone() }.require().await?;
    Ok(Json(json!({"notification_key": key_of(&group)})))
}

/// Creates a group, or changes its members.
pub(super) async fn change(State(api): State<Api>, request: Request) -> Result<Json<Value>, Refusal> {
    let (AuthenticatedCaller { caller, .. }, _, bytes) = read(&api, request).await?;
    let group_change: GroupChange =
        decode_without_nulls(&bytes).map_err(|problem| wrong(problem.to_string()))?;
    let group = group_of(&group_change)?;
    if group_change.registration_ids.is_empty() || group_change.registration_ids.len() > MEMBERS_MAX_COUNT {
        return Err(wrong(format!("registration_ids must have 1 to {MEMBERS_MAX_COUNT} tokens")).into());
    }
    let changing = Changing { api: &api, caller, group };
    match group_change.operation.as_str() {
        "create" => changing.create(&group_change.registration_ids).await?,
        "add" => changing.add(&group_change.registration_ids).await?,
        "remove" => changing.remove(&group_change.registration_ids).await?,
        _ => return Err(wrong("operation must be create, add or remove".to_owned()).into()),
    }
    Ok(Json(json!({"notification_key": key_of(&changing.group)})))
}

/// Sends to the members of a group. The reply lists the tokens of members that are known to be unregistered.
pub(super) async fn send(sender: &Sender<'_>, key: &str, draft: MessageRequest) -> ServiceResult<SendReply> {
    let group = group_of_key(key)?;
    let changing = Changing { api: sender.api, caller: sender.caller, group: group.clone() };
    // The reply counts members; the campaign knows their number only after its start.
    let members = match changing.tokens().await {
        Err(problem) if problem.code == ErrorCode::NotFound => {
            return Ok(SendReply::Refused { error: "NotRegistered" });
        }
        members => members?,
    };
    let standings = sender.standings(&members, DEFAULT_ROUTE).await?;
    let dead = |(token, standing): (String, TokenStanding)| {
        standing.target(DEFAULT_ROUTE).is_none().then_some(token)
    };
    let count = members.len();
    let failed: Vec<_> = members.into_iter().zip(standings).filter_map(dead).collect();
    let target = TargetRequest::Group(group.into());
    match sender.send(0, MessageRequest { target, ..draft }).await {
        Ok(_) => Ok(SendReply::Group {
            success: count - failed.len(),
            failure: failed.len(),
            failed_registration_ids: failed,
        }),
        Err(problem) => refused(problem),
    }
}

impl Changing<'_> {
    /// Fails if the group does not exist.
    async fn require(&self) -> ServiceResult<()> {
        let group = Serve::<ShowGroup>::serve(self.api, self.caller, self.group.clone(), ()).await;
        match group {
            Err(problem) if problem.code == ErrorCode::NotFound => {
                Err(wrong("notification_key not found".to_owned()))
            }
            group => group.map(drop),
        }
    }

    async fn create(&self, tokens: &[String]) -> ServiceResult<()> {
        match self.require().await {
            Ok(()) => return Err(wrong("notification_key already exists".to_owned())),
            // A new group must not exist yet.
            Err(problem) if problem.field.as_deref() == Some(FIELD) => {}
            Err(problem) => return Err(problem),
        }
        // Tokens first, so that an invalid token leaves no empty group behind.
        let devices = self.registered(tokens).await?;
        Serve::<PutGroup>::serve(self.api, self.caller, self.group.clone(), ().into()).await?;
        self.put(devices).await
    }

    async fn add(&self, tokens: &[String]) -> ServiceResult<()> {
        self.require().await?;
        // Checked first, so that a refused request registers no device. The store settles concurrent requests.
        let members = self.tokens().await?;
        let new = tokens.iter().filter(|token| !members.contains(token)).count();
        if members.len() + new > MEMBERS_MAX_COUNT {
            return Err(too_many());
        }
        let devices = self.registered(tokens).await?;
        self.put(devices).await
    }

    async fn put(&self, devices: Vec<DeviceId>) -> ServiceResult<()> {
        let members = MembersRequest { users: Vec::new(), devices };
        let added = self.api.service().add_within(self.caller, &self.group, members, MEMBERS_MAX_COUNT).await;
        match added {
            Err(problem) if problem.code == ErrorCode::LimitReached => Err(too_many()),
            added => added.map(drop),
        }
    }

    /// Removes members; a group without members is deleted.
    async fn remove(&self, tokens: &[String]) -> ServiceResult<()> {
        self.require().await?;
        let fitting: Vec<_> = tokens.iter().filter_map(|token| PushToken::new(token.as_str()).ok()).collect();
        let known = self.api.service().holders(self.caller, &fitting).await?;
        let devices: Vec<_> = known.into_iter().flatten().map(|device| device.id).collect();
        // A request without members would be refused, and unknown tokens are in no group.
        if !devices.is_empty() {
            let members = MembersRequest { users: Vec::new(), devices };
            Serve::<RemoveMembers>::serve(self.api, self.caller, self.group.clone(), members).await?;
        }
        self.api.service().remove_if_empty(self.caller, &self.group).await
    }

    /// Returns the devices of some tokens; registers unknown ones.
    async fn registered(&self, tokens: &[String]) -> ServiceResult<Vec<DeviceId>> {
        let sender = Sender { api: self.api, caller: self.caller, repeat: None, receipt: None };
        let mut devices = Vec::with_capacity(tokens.len());
        for (token, standing) in tokens.iter().zip(sender.standings(tokens, DEFAULT_ROUTE).await?) {
            let device = sender.listed(token, standing).await?;
            devices
                .push(device.ok_or_else(|| wrong("registration_ids has a token that is none".to_owned()))?);
        }
        Ok(devices)
    }

    /// Returns the tokens of the members that are devices.
    async fn tokens(&self) -> ServiceResult<Vec<String>> {
        let group = self.group.clone();
        let members = Serve::<ListMembers>::serve(self.api, self.caller, group, After::default()).await?;
        let mut tokens = Vec::with_capacity(members.devices.len());
        // Each is one query. A group that our own API made larger still gets the message as a whole; only its first members are counted.
        for device in members.devices.into_iter().take(MEMBERS_MAX_COUNT) {
            tokens.extend(self.api.service().token_of(self.caller, device).await?);
        }
        Ok(tokens)
    }
}

fn group_of(change: &GroupChange) -> ServiceResult<GroupName> {
    match (&change.notification_key, &change.notification_key_name) {
        (Some(key), name) => {
            let group = group_of_key(key)?;
            let is_other = name.as_deref().is_some_and(|name| name != group.as_str());
            if is_other {
                Err(wrong("notification_key does not match notification_key_name".to_owned()))
            } else {
                Ok(group)
            }
        }
        (None, Some(name)) => named(name.clone()),
        (None, None) => Err(wrong("notification_key_name is missing".to_owned())),
    }
}

fn named(name: String) -> ServiceResult<GroupName> {
    GroupName::new(name).map_err(|invalid| wrong(invalid.problem.to_string()))
}

fn key_of(group: &GroupName) -> String {
    format!("{KEY_PREFIX}{}", BASE64_URL_SAFE_NO_PAD.encode(group.as_str()))
}

/// Decodes the group of a key.
pub(in crate::front) fn group_of_key(key: &str) -> ServiceResult<GroupName> {
    let bytes = key.strip_prefix(KEY_PREFIX).and_then(|text| BASE64_URL_SAFE_NO_PAD.decode(text).ok());
    let name = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    name.and_then(|name| GroupName::new(name).ok())
        .ok_or_else(|| wrong("notification_key not found".to_owned()))
}

fn too_many() -> Problem {
    wrong(format!("a group has at most {MEMBERS_MAX_COUNT} members"))
}

fn wrong(detail: String) -> Problem {
    Problem::new(ErrorCode::InvalidRequest, detail).at(FIELD)
}
