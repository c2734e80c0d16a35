//! Device groups, which GCM called user notifications: some tokens under one notification key.

use super::message::{GcmRefusal, text};
use super::request::tokens;
use crate::dice::mix;
use crate::json::JsonNode;
use crate::observer::token_hash;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::RwLock;
use std::collections::HashMap;

const MAX_MEMBERS: usize = 20;
const MAX_GROUPS: usize = 100_000;

/// The groups of all projects, by notification key.
pub(super) struct DeviceGroups {
    seed: u64,
    members: RwLock<HashMap<String, Vec<String>>>,
}

/// An operation on a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GroupOperation {
    Create,
    Add,
    Remove,
    /// Adds members and creates a missing group, as the client library does.
    Ensure,
}

/// A request about a group, which an app server or a client sends.
struct GroupRequest<'a> {
    operation: GroupOperation,
    name: &'a str,
    key: Option<&'a str>,
    tokens: Vec<&'a str>,
}

impl DeviceGroups {
    pub(super) fn new(seed: u64) -> Self {
        Self { seed, members: RwLock::default() }
    }

    /// Returns the members behind a notification key.
    pub(super) fn members(&self, key: &str) -> Option<Vec<String>> {
        let groups = self.members.read();
        groups.get(key).cloned()
    }

    /// Returns the notification key of a group by its name.
    pub(super) fn find(&self, project: &str, name: &str) -> Option<String> {
        let key = self.key(project, name);
        self.members(&key).map(|_| key)
    }

    /// Performs the operation of an app server and returns the notification key. Fails with the service's text.
    pub(super) fn manage(&self, project: &str, request: &JsonNode<'_>) -> Result<String, String> {
        let request = GroupRequest::read(request, false)?;
        self.change(project, &request)
    }

    /// Adds tokens for a client that presents an identity. Creates a missing group.
    pub(super) fn manage_by_client(&self, project: &str, request: &JsonNode<'_>) -> Result<String, String> {
        if text(request, "id_token").ok().flatten().is_none_or(str::is_empty) {
            return Err("id_token is missing".to_owned());
        }
        let request = GroupRequest::read(request, true)?;
        self.change(project, &request)
    }

    fn change(&self, project: &str, request: &GroupRequest<'_>) -> Result<String, String> {
        let key = self.key(project, request.name);
        let mut groups = self.members.write();
        request.check(&key, groups.contains_key(&key))?;
        if groups.len() >= MAX_GROUPS && !groups.contains_key(&key) {
            return Err("too many groups".to_owned());
        }
        let mut members = groups.remove(&key).unwrap_or_default();
        // A change that fails leaves the members as they were: they are put back all the same.
        let applied = request.apply(&mut members);
        // A group without members does not exist.
        if !members.is_empty() {
            groups.insert(key.clone(), members);
        }
        applied.map(|()| key)
    }

    /// Derives the notification key of a name: the same name of a project always has the same key.
    fn key(&self, project: &str, name: &str) -> String {
        let start = mix(self.seed ^ token_hash(project.as_bytes())) ^ token_hash(name.as_bytes());
        let bytes: Vec<u8> = (0..12_u64).flat_map(|word| mix(start ^ mix(word)).to_le_bytes()).collect();
        format!("APA91b{}", URL_SAFE_NO_PAD.encode(bytes))
    }
}

impl<'a> GroupRequest<'a> {
    fn read(request: &'a JsonNode<'a>, by_client: bool) -> Result<Self, String> {
        let given = |name: &str| text(request, name).map_err(sentence);
        let operation = match given("operation")? {
            Some("create") if !by_client => GroupOperation::Create,
            Some("add") if by_client => GroupOperation::Ensure,
            Some("add") => GroupOperation::Add,
            Some("remove") => GroupOperation::Remove,
            _ => return Err("operation must be create, add or remove".to_owned()),
        };
        let name = given("notification_key_name")?.filter(|name| !name.is_empty());
        let name = name.ok_or("notification_key_name is missing")?;
        let list = request.exact("registration_ids").ok_or("registration_ids is missing")?;
        let mut tokens = tokens(list).map_err(sentence)?;
        // A token that is given twice is one member, and counts once.
        tokens.sort_unstable();
        tokens.dedup();
        if let Some(wrong) = tokens.iter().position(|token| !crate::fcm::is_token(token)) {
            return Err(format!("registration id {wrong} is not valid"));
        }
        Ok(Self { operation, name, key: given("notification_key")?, tokens })
    }

    /// Checks that the operation is valid for a group that exists (`known`) or does not.
    fn check(&self, key: &str, known: bool) -> Result<(), String> {
        match (self.operation, known) {
            (GroupOperation::Create, true) => Err("notification_key already exists".to_owned()),
            (GroupOperation::Add | GroupOperation::Remove, false) => {
                Err("notification_key not found".to_owned())
            }
            (GroupOperation::Add | GroupOperation::Remove, true) if self.key != Some(key) => {
                Err("notification_key does not fit its name".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Changes the members, unless there would be too many.
    fn apply(&self, members: &mut Vec<String>) -> Result<(), String> {
        if self.operation == GroupOperation::Remove {
            members.retain(|member| !self.tokens.contains(&member.as_str()));
            return Ok(());
        }
        let is_new = |token: &&&str| !members.iter().any(|member| member == **token);
        let new: Vec<String> = self.tokens.iter().filter(is_new).map(|token| (*token).to_owned()).collect();
        if members.len() + new.len() > MAX_MEMBERS {
            return Err(format!("a group has at most {MAX_MEMBERS} members"));
        }
        members.extend(new);
        Ok(())
    }
}

fn sentence(refusal: GcmRefusal) -> String {
    match refusal {
        GcmRefusal::Malformed(sentence) => sentence,
        GcmRefusal::Code(code) => code.to_owned(),
    }
}
