"""What the tool cannot make of the description by itself: what a push service takes, and what a document of XML says.

- A token may be longer than its push service allows, or have another form: which service it is follows from other fields, or from the
  device.
- A kind of addresses belongs to one push service, which another parameter names.
- A map is a row of entries, and no two of them may have the same key: JSON Schema has no word for it.
- The text of a JSON object: of a schema with `contentMediaType` the tool makes any text. It is told what the text says, and the text is
  written here.
- The tool writes null as the text `null`, which is a good name, and then reports that the server took what breaks the schema.
- A list of one thing is that thing in XML, an object without content is an empty text, and numbers and truths are texts: what has the
  wrong type in JSON has the right one in XML.
- The tool leaves out characters that XML has no place for, and then reports that the server took what breaks the schema.
- A whole number that does not fit 64 bits is refused wherever it stands, also in a value of which the schema says nothing.
- All messages that are accepted wait in the queue of one app, and where processors are short a dry run waits behind a few thousand for
  longer than the tool does. As many as a request may have are in one of JSON, few in a document of XML.
"""

import json
import re

import schemathesis
from schemathesis.transport.serialization import serialize_xml

XML = "application/xml"
#: Lengths of tokens that the description allows and not every push service takes.
DOUBTFUL_TOKEN = range(201, 4097)
#: Tokens of Apple's, which the description does not tell from others.
APPLE = {"apns", "apple", "ios", "ipados", "macos", "watchos", "tvos", "visionos"}
APPLE_TOKEN = re.compile("[0-9A-Fa-f]{64,200}")
#: Push services whose addresses have forms of their own, and the platforms that mean one of them.
PARTICULAR = {"live_activity", "live_activity_channel", "live_activity_start", "web_push", "web", "wns", "windows"}
#: Devices of the gateway.
GIVEN = {"gateway", "linux"}
#: The push service that has more than one kind of addresses.
WITH_KINDS = "fcm"
#: Messages in one document of XML that would all be accepted, and are too many here.
TOO_MANY_MESSAGES = range(11, 1001)

#: What elements of this name are, as far as it is the same everywhere.
kinds = {}
#: Elements whose content is the text of JSON.
texts_of_json = set()


def note_texts(schema):
    """Puts what the text of an element of JSON says in the place of the text, and notes the element's name."""
    if isinstance(schema, list):
        for one in schema:
            note_texts(one)
    elif isinstance(schema, dict):
        for name, one in schema.get("properties", {}).items():
            if isinstance(one, dict) and "contentMediaType" in one:
                texts_of_json.add(name)
                schema["properties"][name] = one["contentSchema"]
        for one in schema.values():
            note_texts(one)


def with_texts(value):
    """Returns what a document says, with the texts of JSON that stand in it."""
    if isinstance(value, list):
        return [with_texts(one) for one in value]
    if isinstance(value, dict):
        return {name: json.dumps(one) if name in texts_of_json else with_texts(one) for name, one in value.items()}
    return value


def says_null(value):
    if isinstance(value, list):
        return any(map(says_null, value))
    return value is None or isinstance(value, dict) and any(map(says_null, value.values()))


def holds(value, is_sought):
    """Says whether a text or number of a document is sought; the names of an object are texts too."""
    if isinstance(value, list):
        return any(holds(one, is_sought) for one in value)
    if isinstance(value, dict):
        return any(is_sought(name) or holds(one, is_sought) for name, one in value.items())
    return is_sought(value)


def has_no_place_in_xml(value):
    return isinstance(value, str) and any(one < " " and one not in "\t\n\r" or one in "\ufffe\uffff" for one in value)


def is_a_lost_number(value):
    return isinstance(value, int) and not -(2**63) <= value < 2**64


def has_a_key_twice(value):
    if isinstance(value, list):
        keys = [str(one["key"]) for one in value if isinstance(one, dict) and "key" in one]
        return len(keys) != len(set(keys)) or any(map(has_a_key_twice, value))
    return isinstance(value, dict) and any(map(has_a_key_twice, value.values()))


def note_kinds(schema):
    """Notes what elements a schema names."""
    if isinstance(schema, list):
        for one in schema:
            note_kinds(one)
    elif isinstance(schema, dict):
        for name, one in schema.get("properties", {}).items():
            if isinstance(one, dict) and one.get("type") in ("array", "object", "string", "boolean", "integer"):
                kinds[name] = one["type"]
        for one in schema.values():
            note_kinds(one)


def is_a_text(value):
    return isinstance(value, (bool, int, float)) or value in ("", {}, [])


def is_no_breach(name, value):
    match kinds.get(name):
        case "array":
            # A list inside a list adds its things to it.
            return not isinstance(value, list) or any(isinstance(one, list) or is_a_text(one) for one in value)
        case "object":
            return value in ("", [])
        case "string":
            return is_a_text(value)
        case "boolean":
            return not isinstance(value, bool) and str(value) in ("0", "1", "true", "false")
        case "integer":
            return isinstance(value, str) and value.isdecimal()
    return False


def holds_no_breach(value):
    if isinstance(value, list):
        return any(map(holds_no_breach, value))
    return isinstance(value, dict) and any(is_no_breach(name, one) or holds_no_breach(one) for name, one in value.items())


def has_a_doubtful_token(value):
    if isinstance(value, list):
        return any(map(has_a_doubtful_token, value))
    if not isinstance(value, dict):
        return False
    token, names = value.get("token"), (value.get("platform"), value.get("provider"))
    named = {name.lower() for name in names if isinstance(name, str)}
    is_formed = named.isdisjoint(APPLE) or bool(isinstance(token, str) and APPLE_TOKEN.fullmatch(token))
    is_doubtful = isinstance(token, str) and (len(token) in DOUBTFUL_TOKEN or not is_formed or not named.isdisjoint(PARTICULAR))
    # The gateway gives its devices new tokens.
    is_given = isinstance(value.get("former_token"), str) and not named.isdisjoint(GIVEN)
    return is_doubtful or is_given or any(map(has_a_doubtful_token, value.values()))


def has_too_many_messages(value):
    messages = value.get("messages") if isinstance(value, dict) else None
    return isinstance(messages, list) and len(messages) in TOO_MANY_MESSAGES


def is_lost_in_xml(case):
    body = case.body
    is_wrong = case.meta is not None and case.meta.generation.mode.is_negative
    return says_null(body) or holds(body, has_no_place_in_xml) or has_a_key_twice(body) or has_too_many_messages(body) or is_wrong and holds_no_breach(body)


@schemathesis.hook
def before_load_schema(context, raw_schema):
    for item in raw_schema["paths"].values():
        for operation in item.values():
            schema = operation.get("requestBody", {}).get("content", {}).get(XML, {}).get("schema")
            note_texts(schema)
            note_kinds(schema)


def names_a_kind_elsewhere(query):
    return isinstance(query, dict) and "address" in query and str(query.get("provider")).lower() != WITH_KINDS


@schemathesis.hook
def filter_case(context, case):
    is_doubtful = has_a_doubtful_token(case.body) or holds(case.body, is_a_lost_number) or names_a_kind_elsewhere(case.query)
    return not is_doubtful and not (case.media_type == XML and is_lost_in_xml(case))


@schemathesis.serializer(XML)
def write_xml(context, value):
    return serialize_xml(context.case, with_texts(value))["data"]
