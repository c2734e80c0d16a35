//! Data of the server's own that answer a study's arrays: stored beforehand, and read page by page.

use super::list_page::{ListKind, ListPage, ListedDevice};
use super::replay::{FaceCall, FieldValue};
use anyhow::{Context, bail};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use stentor_lab::subject::reference::{Op, own_data, own_order, own_points};
use stentor_stage::client::{ApiClient, segment};
use stentor_stage::text::cell;
use stentor_wire::{Content, Item, Point};

/// Limit of entries in a page and in a request.
const PAGE_MAX: u64 = 1_000;
/// Limit of devices with all their texts per page, so that a reply stays below a frame of the raw socket (`api.body_max_bytes`, 1 MiB).
const DEVICES_MAX: u64 = 500;
const GROUP: &str = "members";

/// The data that a study reads from the server.
#[derive(Clone, Debug)]
pub(crate) struct OwnData {
    op: Op,
    kind: String,
    count: u64,
    /// Entries of an exchange, if a study reads a list in pages.
    page: Option<u64>,
    letters: u64,
    seed: u64,
    /// Ids to be sorted by the server, in an order that is not theirs; made once, so that no measured time contains it.
    unordered: Vec<String>,
}

/// The entries of one exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExchangePortion {
    /// Number of entries before them.
    pub(crate) from: u64,
    pub(crate) count: u64,
    /// Its number among the pages of a list, from 1.
    pub(crate) page: u64,
    /// True if it is the last page of the list.
    pub(crate) is_last: bool,
}

impl OwnData {
    /// Reads the levels of a cell.
    pub(crate) fn of(op: Op, factors: &BTreeMap<String, String>, seed: u64) -> anyhow::Result<Self> {
        let number = |name: &str| {
            let level = factors.get(name).map(|level| level.parse::<u64>());
            level.transpose().with_context(|| format!("{name}={} is no number", factors[name]))
        };
        let (count, kind) = match op {
            Op::Array => (number("items")?, factors.get("type").map_or("Int", String::as_str)),
            Op::Sort => (number("items")?, "Int"),
            Op::Points => (number("poi")?, "Point"),
            Op::Echo => bail!("the server has no operation that sends a payload back"),
        };
        let page = number("page")?.filter(|page| *page > 0);
        let letters = number("letters")?.unwrap_or(600);
        let count = count.unwrap_or(20);
        let unordered = if op == Op::Sort { unordered(count, seed) } else { Vec::new() };
        Ok(Self { op, kind: kind.to_owned(), count, page, letters, seed, unordered })
    }

    /// Creates an app and stores the data in it, except for the data that each exchange sends.
    pub(crate) async fn put(&self, root: ApiClient) -> anyhow::Result<()> {
        let app = cell(&root.post("/v1/apps", &json!({"name": "study"})).await?["id"]);
        let client = root.for_app(app);
        if self.op == Op::Sort {
            return Ok(());
        }
        match self.content()? {
            Content::Numbers(numbers) => put_members(&client, numbers.iter().map(i64::to_string)).await,
            Content::Texts(texts) => put_members(&client, texts.into_iter()).await,
            Content::Objects(items) => put_topics(&client, &items).await,
            Content::Points(points) => put_devices(&client, &points).await,
            Content::Payload(_) => bail!("there is no such type of array"),
        }
    }

    fn content(&self) -> anyhow::Result<Content> {
        let content = match self.op {
            Op::Points => Some(Content::Points(own_points(0, self.count, self.letters, self.seed))),
            _ => own_data(&self.kind, self.count, self.seed),
        };
        content.context("there is no such type of array")
    }

    /// Returns the entries of an exchange, by its number.
    pub(crate) fn portion(&self, seq: u64) -> ExchangePortion {
        let size = self.page.unwrap_or(self.count).max(1);
        let pages = self.count.div_ceil(size).max(1);
        let place = seq % pages;
        let from = place * size;
        ExchangePortion {
            from,
            count: size.min(self.count - from),
            page: place + 1,
            is_last: place + 1 == pages,
        }
    }

    /// Lists the calls that add the ids to be sorted to this group; empty if the data are already stored.
    pub(crate) fn sending(&self, group: &str) -> Vec<FaceCall> {
        let add = |ids: &[String]| FaceCall {
            operation: "groups.add",
            element: "AddMembers",
            method: "/stentor.v1.Groups/AddMembers",
            verb: "POST",
            path: format!("/v1/groups/{group}/members"),
            path_fields: 1,
            fields: vec![
                (1, "group", FieldValue::Text(group.to_owned())),
                (3, "users", FieldValue::Texts(ids.to_vec())),
            ],
        };
        self.unordered.chunks(PAGE_MAX as usize).map(add).collect()
    }

    /// Returns the name of the group of an exchange, by its number among all: each exchange that sorts has its own group.
    pub(crate) fn group(&self, number: u64) -> String {
        if self.op == Op::Sort { format!("exchange-{number}") } else { GROUP.to_owned() }
    }

    /// Returns the call that creates the group of an exchange; `None` if the data are already stored.
    pub(crate) fn making(&self, group: &str) -> Option<FaceCall> {
        (self.op == Op::Sort).then(|| FaceCall {
            operation: "groups.put",
            element: "PutGroup",
            method: "/stentor.v1.Groups/PutGroup",
            verb: "PUT",
            path: format!("/v1/groups/{group}"),
            path_fields: 1,
            fields: vec![(1, "group", FieldValue::Text(group.to_owned()))],
        })
    }

    /// Returns the call for `wanted` further entries, after a cursor.
    pub(crate) fn call(&self, wanted: u64, after: Option<&str>) -> FaceCall {
        self.call_in(GROUP, wanted, after)
    }

    /// Returns the call for `wanted` further entries; `group` applies to members only.
    pub(crate) fn call_in(&self, group: &str, wanted: u64, after: Option<&str>) -> FaceCall {
        let (path, operation, element, method) = match self.list() {
            ListKind::Topics => {
                ("/v1/topics".to_owned(), "topics.list", "ListTopics", "/stentor.v1.Topics/ListTopics")
            }
            ListKind::Devices => {
                ("/v1/devices".to_owned(), "devices.list", "ListDevices", "/stentor.v1.Devices/ListDevices")
            }
            ListKind::Members => {
                let path = format!("/v1/groups/{group}/members");
                (path, "groups.members", "ListMembers", "/stentor.v1.Groups/ListMembers")
            }
        };
        let most = if self.list() == ListKind::Devices { DEVICES_MAX } else { PAGE_MAX };
        let limit = wanted.clamp(1, most);
        let cursor = after.map(|after| format!("&after={}", segment(after))).unwrap_or_default();
        let mut fields = Vec::new();
        if self.list() == ListKind::Members {
            fields.push((1, "group", FieldValue::Text(group.to_owned())));
        }
        let path_fields = fields.len();
        let first = path_fields as u8 + 1;
        fields.extend(after.map(|after| (first, "after", FieldValue::Text(after.to_owned()))));
        fields.push((first + 1, "limit", FieldValue::Number(limit.cast_signed())));
        let path = format!("{path}?limit={limit}{cursor}");
        FaceCall { operation, element, method, verb: "GET", path, path_fields, fields }
    }

    /// Returns the kind of list of its pages.
    pub(crate) fn list(&self) -> ListKind {
        match self.kind.as_str() {
            "Object" => ListKind::Topics,
            "Point" => ListKind::Devices,
            _ => ListKind::Members,
        }
    }

    /// Appends the entries of a page to the answer, and returns its number of entries.
    pub(crate) fn add(&self, answer: &mut Content, page: ListPage) -> anyhow::Result<u64> {
        match answer {
            Content::Numbers(numbers) => {
                for user in page.users {
                    numbers.push(user.parse().with_context(|| format!("{user:?} is no number"))?);
                }
            }
            Content::Texts(texts) => texts.extend(page.users),
            Content::Objects(items) => items.extend(page.topics),
            Content::Points(points) => points.extend(page.devices.into_iter().map(ListedDevice::point)),
            Content::Payload(_) => bail!("there is no such type of array"),
        }
        Ok(answer.entries() as u64)
    }

    /// Returns an empty answer.
    pub(crate) fn nothing(&self) -> Content {
        match self.kind.as_str() {
            "Int" => Content::Numbers(Vec::new()),
            "String" => Content::Texts(Vec::new()),
            "Point" => Content::Points(Vec::new()),
            _ => Content::Objects(Vec::new()),
        }
    }
}

/// Orders ids by their digits from the last to the first.
fn unordered(count: u64, seed: u64) -> Vec<String> {
    let mut ids: Vec<String> = own_order(count, seed).iter().map(i64::to_string).collect();
    ids.sort_by_cached_key(|id| id.chars().rev().collect::<String>());
    ids
}

async fn put_members(client: &ApiClient, ids: impl Iterator<Item = String>) -> anyhow::Result<()> {
    client.put(&format!("/v1/groups/{GROUP}"), &json!({})).await?;
    let ids: Vec<String> = ids.collect();
    for some in ids.chunks(PAGE_MAX as usize) {
        client.post(&format!("/v1/groups/{GROUP}/members"), &json!({"users": some})).await?;
    }
    Ok(())
}

/// Subscribes devices to each topic, in the number that the topic's object gives. A device has no more topics than a page, since the server
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

/// Registers a device for each point, with its texts as the device's user and tags.
async fn put_devices(client: &ApiClient, points: &[Point]) -> anyhow::Result<()> {
    let devices = points.iter().enumerate().map(|(number, point)| {
        let ListedDevice { user, tags } = ListedDevice::of_point(point);
        json!({"platform": "android", "token": format!("phone-{number}"), "user": user, "tags": tags})
    });
    let devices: Vec<Value> = devices.collect();
    for some in devices.chunks(DEVICES_MAX as usize) {
        let results = client.post("/v1/devices/bulk", &json!({ "devices": some })).await?;
        let refused = results["results"].as_array().context("no results")?;
        let refused = refused.iter().find(|one| !one["refused"].is_null());
        if let Some(one) = refused {
            bail!("a device was refused: {one}");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(page: Option<&str>) -> OwnData {
        let mut factors = BTreeMap::from([("poi".to_owned(), "150".to_owned())]);
        factors.extend(page.map(|page| ("page".to_owned(), page.to_owned())));
        OwnData::of(Op::Points, &factors, 1).unwrap()
    }

    #[test]
    fn a_whole_is_one_portion_or_as_many_as_its_pages_again_and_again() {
        let whole = ExchangePortion { from: 0, count: 150, page: 1, is_last: true };
        assert_eq!([points(None).portion(0), points(None).portion(7)], [whole; 2]);
        let last = ExchangePortion { from: 128, count: 22, page: 3, is_last: true };
        assert_eq!([points(Some("64")).portion(2), points(Some("64")).portion(5)], [last; 2]);
        assert!(!points(Some("64")).portion(3).is_last);
    }

    #[test]
    fn what_is_to_be_put_in_order_is_sent_in_another_and_all_of_it() {
        let factors = BTreeMap::from([("items".to_owned(), "1500".to_owned())]);
        let own = OwnData::of(Op::Sort, &factors, 1).unwrap();
        let sent: Vec<String> = own
            .sending("g")
            .iter()
            .flat_map(|call| match &call.fields[1].2 {
                FieldValue::Texts(ids) => ids.clone(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(own.sending("g").len(), 2);
        let mut sorted = sent.clone();
        sorted.sort_unstable();
        assert_ne!(sent, sorted);
        let wanted: Vec<String> = own_order(1500, 1).iter().map(i64::to_string).collect();
        assert_eq!(sorted, wanted, "the order of texts is that of numbers");
    }

    #[test]
    fn what_the_server_cannot_be_asked_is_refused() {
        assert!(
            OwnData::of(Op::Echo, &BTreeMap::new(), 1)
                .unwrap_err()
                .to_string()
                .contains("sends a payload back")
        );
        let wrong = BTreeMap::from([("items".to_owned(), "many".to_owned())]);
        assert!(OwnData::of(Op::Sort, &wrong, 1).unwrap_err().to_string().contains("items=many"));
    }
}
