//! Data of the server's own that answer a study's arrays: put into it beforehand, and asked for page by page.

use super::list_page::ListPage;
use super::replay::{FaceCall, FieldValue};
use crate::client::{ApiClient, segment};
use crate::text::cell;
use anyhow::{Context, bail};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use stentor_lab::subject::reference::own_data;
use stentor_wire::{Content, Item};

/// The most that the server puts into a page, and takes in a request.
const PAGE_MAX: u64 = 1_000;
const GROUP: &str = "members";

/// What of its data the server is asked for.
#[derive(Clone, Debug)]
pub(crate) struct OwnData {
    kind: String,
    count: u64,
}

impl OwnData {
    /// Reads the levels of a cell.
    pub(crate) fn of(factors: &BTreeMap<String, String>) -> anyhow::Result<Self> {
        let count = factors.get("items").map_or("20", String::as_str);
        let kind = factors.get("type").map_or("Int", String::as_str).to_owned();
        Ok(Self { kind, count: count.parse().with_context(|| format!("items={count} is no number"))? })
    }

    /// Makes an app and puts the data into it.
    pub(crate) async fn put(&self, root: ApiClient, seed: u64) -> anyhow::Result<()> {
        let app = cell(&root.post("/v1/apps", &json!({"name": "study"})).await?["id"]);
        let client = root.for_app(app);
        match own_data(&self.kind, self.count, seed).context("there is no such type of array")? {
            Content::Numbers(numbers) => put_members(&client, numbers.iter().map(i64::to_string)).await,
            Content::Texts(texts) => put_members(&client, texts.into_iter()).await,
            Content::Objects(items) => put_topics(&client, &items).await,
            _ => bail!("there is no such type of array"),
        }
    }

    /// Returns the call for what comes next, when so many are there already.
    pub(crate) fn call(&self, there: u64, after: Option<&str>) -> FaceCall {
        let limit = self.count.saturating_sub(there).clamp(1, PAGE_MAX);
        let is_topics = self.kind == "Object";
        let path = if is_topics { "/v1/topics".to_owned() } else { format!("/v1/groups/{GROUP}/members") };
        let cursor = after.map(|after| format!("&after={}", segment(after))).unwrap_or_default();
        let mut fields = Vec::new();
        if !is_topics {
            fields.push((1, "group", FieldValue::Text(GROUP.to_owned())));
        }
        let first = fields.len() as u8 + 1;
        fields.extend(after.map(|after| (first, "after", FieldValue::Text(after.to_owned()))));
        fields.push((first + 1, "limit", FieldValue::Number(limit.cast_signed())));
        let (operation, element, method) = if is_topics {
            ("topics.list", "ListTopics", "/stentor.v1.Topics/ListTopics")
        } else {
            ("groups.members", "ListMembers", "/stentor.v1.Groups/ListMembers")
        };
        FaceCall { operation, element, method, path: format!("{path}?limit={limit}{cursor}"), fields }
    }

    /// Adds what a page has to the answer, and returns how much is there.
    pub(crate) fn add(&self, answer: &mut Content, page: ListPage) -> anyhow::Result<u64> {
        match answer {
            Content::Numbers(numbers) => {
                for user in page.users {
                    numbers.push(user.parse().with_context(|| format!("{user:?} is no number"))?);
                }
            }
            Content::Texts(texts) => texts.extend(page.users),
            Content::Objects(items) => items.extend(page.topics),
            _ => bail!("there is no such type of array"),
        }
        Ok(answer.entries() as u64)
    }

    /// Returns an answer in which nothing is yet.
    pub(crate) fn nothing(&self) -> Content {
        match self.kind.as_str() {
            "Int" => Content::Numbers(Vec::new()),
            "String" => Content::Texts(Vec::new()),
            _ => Content::Objects(Vec::new()),
        }
    }

    /// Whether more is to be asked for.
    pub(crate) const fn is_short(&self, there: u64) -> bool {
        there < self.count
    }
}

async fn put_members(client: &ApiClient, ids: impl Iterator<Item = String>) -> anyhow::Result<()> {
    client.put(&format!("/v1/groups/{GROUP}"), &json!({})).await?;
    let ids: Vec<String> = ids.collect();
    for some in ids.chunks(PAGE_MAX as usize) {
        client.post(&format!("/v1/groups/{GROUP}/members"), &json!({"users": some})).await?;
    }
    Ok(())
}

/// Subscribes to each topic as many devices as its number says; a device has no more topics than a page, since the server
/// limits them.
async fn put_topics(client: &ApiClient, items: &[Item]) -> anyhow::Result<()> {
    for (place, some) in items.chunks(PAGE_MAX as usize).enumerate() {
        let most = some.iter().map(|item| item.id).max().unwrap_or(0);
        for number in 0..most {
            let names = some.iter().filter(|item| item.id > number).map(|item| json!(item.name));
            let topics: Vec<Value> = names.collect();
            let device =
                json!({"platform": "android", "token": format!("phone-{place}-{number}"), "topics": topics});
            client.post("/v1/devices", &device).await?;
        }
    }
    Ok(())
}
