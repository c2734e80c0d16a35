//! Links from responses to further operations, for tools that explore the API.

use serde_json::{Map, Value, json};

/// Responses, the values in them, and the operations that take these values as parameters.
struct ResponseLink {
    from: &'static str,
    statuses: &'static [&'static str],
    values: &'static [(&'static str, &'static str)],
    to: &'static [&'static str],
}

const ID: &str = "$response.body#/id";

const LINKS: &[ResponseLink] = &[
    ResponseLink {
        from: "proposals_create",
        statuses: &["201"],
        values: &[("proposal", ID)],
        to: &["proposals_show", "proposals_approve", "proposals_remove"],
    },
    ResponseLink {
        from: "apps_create_app",
        statuses: &["201"],
        values: &[("app", ID)],
        to: &[
            "apps_show_app",
            "apps_delete_app",
            "apps_create_key",
            "apps_list_keys",
            "apps_list_credentials",
        ],
    },
    ResponseLink {
        from: "apps_create_key",
        statuses: &["201"],
        values: &[("app", "$request.path.app"), ("key", ID)],
        to: &["apps_delete_key"],
    },
    ResponseLink {
        from: "devices_register",
        statuses: &["200", "201"],
        values: &[("device", ID)],
        to: &[
            "devices_show",
            "devices_replace",
            "devices_change",
            "devices_remove",
            "devices_topics",
            "devices_subscribe",
            "devices_history",
        ],
    },
    ResponseLink {
        from: "devices_subscribe",
        statuses: &["204"],
        values: &[("device", "$request.path.device"), ("topic", "$request.path.topic")],
        to: &["devices_unsubscribe", "topics_show", "topics_remove"],
    },
    ResponseLink {
        from: "devices_list",
        statuses: &["200"],
        values: &[("device", "$response.body#/devices/0/id")],
        to: &["devices_show", "devices_history"],
    },
    ResponseLink {
        from: "devices_history",
        statuses: &["200"],
        values: &[("device", "$request.path.device"), ("message", "$response.body#/deliveries/0/message")],
        to: &["messages_deliveries"],
    },
    ResponseLink {
        from: "users_put",
        statuses: &["200"],
        values: &[("external_id", "$response.body#/external_id")],
        to: &["users_show", "users_remove"],
    },
    ResponseLink {
        from: "groups_put",
        statuses: &["200"],
        values: &[("group", "$response.body#/name")],
        to: &["groups_show", "groups_remove", "groups_members", "groups_add", "groups_take_out"],
    },
    ResponseLink {
        from: "topics_subscribe",
        statuses: &["200"],
        values: &[("topic", "$request.path.topic")],
        to: &["topics_show", "topics_remove", "topics_unsubscribe"],
    },
    ResponseLink {
        from: "topics_list",
        statuses: &["200"],
        values: &[("topic", "$response.body#/topics/0/name")],
        to: &["topics_show"],
    },
    ResponseLink {
        from: "services_publish",
        statuses: &["200"],
        values: &[("service", "$response.body#/name")],
        to: &["services_show", "services_remove"],
    },
    ResponseLink {
        from: "messages_send",
        statuses: &["202"],
        values: &[("message", ID), ("campaign", "$response.body#/campaign")],
        to: &[
            "messages_show",
            "messages_ledger",
            "campaigns_show",
            "campaigns_cancel",
            "campaigns_pause",
            "campaigns_resume",
        ],
    },
    ResponseLink {
        from: "messages_list",
        statuses: &["200"],
        values: &[("message", "$response.body#/messages/0/id")],
        to: &["messages_show", "messages_ledger"],
    },
    ResponseLink {
        from: "campaigns_list",
        statuses: &["200"],
        values: &[("campaign", "$response.body#/campaigns/0/id")],
        to: &["campaigns_show"],
    },
    ResponseLink {
        from: "schedules_create",
        statuses: &["201"],
        values: &[("schedule", ID)],
        to: &[
            "schedules_show",
            "schedules_remove",
            "schedules_cancel",
            "schedules_pause",
            "schedules_resume",
        ],
    },
    ResponseLink {
        from: "schedules_list",
        statuses: &["200"],
        values: &[("schedule", "$response.body#/schedules/0/id")],
        to: &["schedules_show"],
    },
];

/// Adds the links to the responses.
pub(super) fn apply(document: &mut Value) {
    let taken = path_parameters(document);
    let credentials = credentials();
    let paths = document["paths"].as_object_mut().into_iter().flatten();
    for operation in
        paths.filter_map(|(_, item)| item.as_object_mut()).flatten().map(|(_, operation)| operation)
    {
        let name = operation["operationId"].as_str().unwrap_or_default();
        let Some(link) = LINKS.iter().find(|link| link.from == name) else { continue };
        for status in link.statuses {
            if let Some(answer) = operation["responses"].get_mut(*status) {
                let more = credentials.iter().filter(|_| link.to.contains(&"apps_list_credentials"));
                let to = link.to.iter().copied().chain(more.map(String::as_str));
                answer["links"] = links(link, to, &taken);
            }
        }
    }
}

/// Returns the operations that set and delete credentials, to which a list of credentials leads.
fn credentials() -> Vec<String> {
    let kinds = stentor_providers::all().map(|adapter| adapter.kind);
    kinds.flat_map(|kind| ["put", "delete"].map(|verb| format!("apps_{verb}_{kind}"))).collect()
}

fn links<'a>(link: &ResponseLink, to: impl Iterator<Item = &'a str>, taken: &Map<String, Value>) -> Value {
    let one = |to: &str| {
        let takes = |name: &str| {
            taken.get(to).is_some_and(|names| names.as_array().is_some_and(|all| all.contains(&name.into())))
        };
        let values = link.values.iter().filter(|(name, _)| takes(name));
        let parameters: Map<_, _> =
            values.map(|(name, value)| ((*name).to_owned(), (*value).into())).collect();
        (to.to_owned(), json!({"operationId": to, "parameters": parameters}))
    };
    to.map(one).collect::<Map<_, _>>().into()
}

/// Lists the path parameters of each operation.
fn path_parameters(document: &Value) -> Map<String, Value> {
    let items = document["paths"].as_object().into_iter().flatten().filter_map(|(_, item)| item.as_object());
    let one = |operation: &Value| {
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        let names: Vec<_> =
            parameters.filter(|one| one["in"] == "path").map(|one| one["name"].clone()).collect();
        Some((operation["operationId"].as_str()?.to_owned(), Value::from(names)))
    };
    items.flatten().filter_map(|(_, operation)| one(operation)).collect()
}
