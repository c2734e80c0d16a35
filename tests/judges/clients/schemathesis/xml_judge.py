"""Replies of a running server in XML, each held against what its description says of it:
xml_judge.py URL ROOT_KEY CHANNEL_CREDENTIAL

Every operation whose reply the description has in XML is asked, with things there to be told of. What a document says is read by
the description alone and judged by a foreign validator; where asking changes nothing, it must say the same as the reply in JSON.
"""

import json
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import xml.etree.ElementTree as ElementTree

import jsonschema_rs

XML, JSON = "application/xml", "application/json"
#: Words under which a schema has others.
COMBINED = ("allOf", "anyOf", "oneOf")
#: What differs from one look to the next: clocks and counters of the server.
MOVES = {"status_status", "nodes_list", "audit_list"}
WAIT_SECONDS = 60

URL, ROOT = sys.argv[1:3]
CHANNEL_CREDENTIAL = json.loads(sys.argv[3])
with urllib.request.urlopen(f"{URL}/openapi.json") as reply:
    DOCUMENT = json.load(reply)
OPERATIONS = {one["operationId"]: (method, path, one) for path, item in DOCUMENT["paths"].items() for method, one in item.items()}

#: Forms of replies that were judged: operation and status.
judged = set()


def resolved(schema):
    while "$ref" in schema:
        found = DOCUMENT
        for part in schema["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        schema = found
    return schema


def elements(schema):
    """Returns what a schema says of the elements in one, its own words before those of its parts."""
    schema = resolved(schema)
    found = dict(schema.get("properties", {}))
    for part in (part for word in COMBINED for part in schema.get(word, [])):
        for name, one in elements(part).items():
            found.setdefault(name, one)
    return found


def kind(schema):
    schema = resolved(schema)
    parts = (part for word in COMBINED for part in schema.get(word, []))
    if isinstance(schema.get("type"), list):
        return next(one for one in schema["type"] if one != "null")
    return schema.get("type") or next((found for found in map(kind, parts) if found), None)


def value(element, schema, at):
    """Reads an element as the value that the schema says it is."""
    known = elements(schema)
    if known or kind(schema) == "object":
        return {**record(element, known, at), **empty_lists(element, schema)}
    assert len(element) == 0, f"{at}: elements inside a {kind(schema)}"
    text = element.text or ""
    match kind(schema):
        case "boolean":
            return {"true": True, "false": False}[text]
        case "integer":
            return int(text)
        case "number":
            return float(text)
        case "string":
            return text
    raise AssertionError(f"{at}: nothing is said of it: {schema}")


def record(element, known, at):
    read = {}
    for child in element:
        name = child.tag.rpartition("}")[2]
        assert name in known, f"{at}: <{name}> is not described"
        one = resolved(known[name])
        if kind(one) == "array":
            read.setdefault(name, []).append(value(child, one["items"], f"{at}/{name}"))
        else:
            assert name not in read, f"{at}: <{name}> is there twice"
            read[name] = value(child, one, f"{at}/{name}")
    return read


def empty_lists(element, schema):
    """A list of nothing is no element."""
    tags = {child.tag.rpartition("}")[2] for child in element}
    known = elements(schema)
    needed = set(resolved(schema).get("required", []))
    return {name: [] for name in needed - tags if name in known and kind(known[name]) == "array"}


def ask(operation, accept, body=None, by=None, **named):
    method, path, _ = OPERATIONS[operation]
    query = {}
    for name, one in named.items():
        if f"{{{name}}}" in path:
            path = path.replace(f"{{{name}}}", one)
        else:
            query[name] = one
    headers = {"Authorization": f"Bearer {by or ROOT}", "X-Stentor-App": APP, "Accept": accept}
    if isinstance(body, bytes):
        headers["Content-Type"] = "application/x-ndjson"
    elif body is not None:
        headers["Content-Type"], body = JSON, json.dumps(body).encode()
    url = URL + path + ("?" + urllib.parse.urlencode(query) if query else "")
    request = urllib.request.Request(url, data=body, headers=headers, method=method.upper())
    try:
        with urllib.request.urlopen(request) as reply:
            return reply.status, reply.headers["Content-Type"], reply.read()
    except urllib.error.HTTPError as refusal:
        return refusal.code, refusal.headers["Content-Type"], refusal.read()


def judge(schema, document, at):
    """Reads a document of XML by a schema, has it validated, and returns what it says."""
    root = ElementTree.fromstring(document)
    said = schema["xml"]
    assert root.tag == f"{{{said['namespace']}}}{said['name']}", f"{at}: {root.tag} in place of {said}"
    read = value(root, schema, at)
    jsonschema_rs.validator_for({**schema, "components": DOCUMENT["components"]}).validate(read)
    return read


def plain(value):
    """Leaves out of JSON what XML says by leaving an element out, and what it says by a text."""
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items() if one is not None and one != []}
    return value


def is_same(in_xml, in_json):
    """Maps are rows of entries, words of a choice are elements, and free JSON is its text: those are compared by what they hold."""
    if isinstance(in_xml, str) and in_xml != in_json:
        return json.loads(in_xml) == in_json
    if isinstance(in_xml, dict) and isinstance(in_json, str):
        return in_xml == {in_json: True}
    if isinstance(in_xml, dict) and set(in_xml) <= {"entry"} and isinstance(in_json, dict):
        rows = {one["key"]: one["value"] for one in in_xml.get("entry", [])}
        return rows.keys() == in_json.keys() and all(is_same(rows[key], in_json[key]) for key in rows)
    if isinstance(in_xml, dict) and isinstance(in_json, dict):
        return in_xml.keys() == in_json.keys() and all(is_same(one, in_json[name]) for name, one in in_xml.items())
    if isinstance(in_xml, list) and isinstance(in_json, list):
        return len(in_xml) == len(in_json) and all(map(is_same, in_xml, in_json))
    return in_xml == in_json


def key_of(described, status):
    """Returns the name that a reply has in the description: its status, or the range that it falls into."""
    return str(status) if str(status) in described["responses"] else f"{status // 100}XX"


def told(operation, body=None, **named):
    """Asks an operation for XML, judges its reply, and returns what it says."""
    method, _, described = OPERATIONS[operation]
    status, content_type, document = ask(operation, XML, body, **named)
    assert status < 300, f"{operation}: {status} {document}"
    reply = key_of(described, status)
    content = described["responses"][reply].get("content", {})
    if XML not in content:
        assert not document, f"{operation}: {document}"
        return None
    assert content_type == XML, f"{operation}: {content_type}"
    read = judge(content[XML]["schema"], document, operation)
    judged.add((operation, reply))
    if method == "get" and operation not in MOVES:
        in_json = json.loads(ask(operation, JSON, body, **named)[2])
        assert is_same(plain(read), plain(in_json)), f"{operation}: XML says {read}, JSON says {in_json}"
    return read


def refused(operation, code, body=None, **named):
    status, content_type, document = ask(operation, XML, body, **named)
    assert content_type == "application/problem+xml", f"{operation}: {status} {content_type} {document}"
    schema = DOCUMENT["components"]["responses"]["Problem"]["content"][content_type]["schema"]
    problem = judge(schema, document, operation)
    assert (problem["code"], problem["status"]) == (code, status), problem


def apps():
    global APP
    APP = ""
    APP = told("apps_create_app", {"name": "a <shop> & more"})["id"]
    told("apps_put_null", {}, app=APP)
    told("apps_put_live_activity_channel", CHANNEL_CREDENTIAL, app=APP)
    told("channels_create", {})
    told("channels_list")
    global KEY
    KEY = told("apps_create_key", {"name": "backend", "scopes": ["send"]}, app=APP)["secret"]
    told("apps_create_service_account", {"name": "old server", "url": "https://push.example"}, app=APP)
    told("apps_check_credential", app=APP, provider="null")
    told("apps_put_upstream_webhook", {"url": "https://app.example.org/hook"}, app=APP)
    for operation in ("list_apps", "show_app", "list_credentials", "list_keys", "list_service_accounts", "show_upstream_webhook"):
        told(f"apps_{operation}", **({} if operation == "list_apps" else {"app": APP}))


def devices():
    phone = {"platform": "android", "provider": "null", "token": "token-of-a-phone", "user": "anna", "locale": "de-CH",
             "time_zone": "Europe/Zurich", "tags": ["beta"], "topics": ["news"]}
    device = told("devices_register", phone)["id"]
    told("devices_register", phone)
    told("devices_register_many", {"devices": [{**phone, "token": "two"}, {"platform": "android", "tokn": "three"}]})
    lines = '{"platform":"android","provider":"null","token":"four"}\n{"platform":"none","token":"five"}\n'
    told("devices_import", lines.encode())
    told("devices_change", {"locale": None, "tags": ["gamma"]}, device=device)
    told("devices_replace", phone, device=device)
    told("topics_subscribe", {"devices": [device]}, topic="sports")
    told("topics_subscribe_many", {"subscriptions": [{"device": device, "topic": "news"}, {"device": "dev_0000000000000", "topic": "x"}]})
    told("groups_put", group="team")
    told("groups_add", {"users": ["anna", "berta"], "devices": [device]}, group="team")
    told("users_put", external_id="carla")
    for group, external_id in (("team", "anna"), ("empty", "carla")):
        told("groups_put", group=group)
        told("groups_show", group=group)
        told("groups_members", group=group)
        told("users_show", external_id=external_id)
    told("devices_list", limit="2")
    told("devices_list", tag="nobody")
    told("devices_show", device=device)
    told("devices_topics", device=device)
    for operation in ("groups_list", "users_list", "topics_list"):
        told(operation)
    told("topics_show", topic="news")
    return device


def settle(later):
    """Waits until every campaign but one has ended, so that two looks see the same."""
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        campaigns = json.loads(ask("campaigns_list", JSON)[2])["campaigns"]
        if all(one["id"] == later or one.get("ended_at") for one in campaigns):
            return
        assert time.monotonic() < deadline, campaigns
        time.sleep(0.05)


def messages(device):
    message = {"target": {"topic": "news"}, "notification": {"title": "a <title>", "body": "]]>"}, "data": {"k": "v", "ä": "<&>"},
               "android": {"direct_boot_ok": True}, "ttl_seconds": 3600, "collapse_key": "score", "priority": "high"}
    sent = told("messages_send", message)["accepted"]
    told("messages_send", {**message, "dry_run": True})
    later = told("messages_send", {**message, "target": "everyone", "send_at": "2027-01-01T00:00:00Z"})["accepted"]["campaign"]
    told("messages_send_many", {"messages": [message, {**message, "dry_run": True}, {**message, "target": {"topic": "none"}}]})
    settle(later)
    told("messages_ledger", message=sent["id"])
    for shown in told("messages_list")["messages"]:
        told("messages_show", message=shown["id"])
    told("messages_deliveries", message=sent["id"], device=device)
    told("messages_all_deliveries", message=sent["id"])
    told("devices_history", device=device)
    told("campaigns_list", limit="1")
    told("campaigns_show", campaign=sent["campaign"])
    for operation in ("pause", "resume", "cancel"):
        told(f"campaigns_{operation}", campaign=later)
    schedule = told("schedules_create", {"name": "morning", "cron": "0 9 * * 1-5", "time_zone": "Europe/Rome", "message": message})["schedule"]["id"]
    for operation in ("pause", "resume", "show", "cancel"):
        told(f"schedules_{operation}", schedule=schedule)
    told("schedules_list")
    own = told("proposals_create", {"message": message})["id"]
    refused("proposals_approve", "approval_required", proposal=own)
    other = json.loads(ask("proposals_create", JSON, {"message": message}, by=KEY)[2])["id"]
    told("proposals_approve", proposal=other)
    told("proposals_show", proposal=other)
    told("proposals_list")
    told("proposals_remove", proposal=own)


def the_rest(device):
    told("services_publish", {"kind": "ipp", "address": "ipp://127.0.0.1/print", "description": "By the door"}, service="printer")
    told("services_show", service="printer")
    told("services_list", kind="ipp")
    told("upstream_list")
    told("upstream_dead_letters")
    for operation in ("acknowledge", "retry_dead_letters"):
        told(f"upstream_{operation}", {"ids": ["ups_0000000000001"]})
    told("audit_list")
    told("status_status")
    told("nodes_list")
    told("settings_list")
    told("topics_unsubscribe", {"devices": [device]}, topic="sports")
    told("groups_take_out", {"users": ["anna"], "devices": [device]}, group="team")
    refused("devices_show", "not_found", device="dev_0000000000000")
    refused("devices_register", "invalid_field", {"platform": "android", "tokn": "t"})
    refused("apps_show_app", "not_found", app="app_0000000000000")


apps()
phone = devices()
messages(phone)
the_rest(phone)
described = {
    (operation, status)
    for operation, (_, _, one) in OPERATIONS.items()
    for status, reply in one["responses"].items()
    if XML in reply.get("content", {})
}
assert judged == described, f"not judged: {described - judged}"
print(f"{len(judged)} replies in XML: the judge is content")
