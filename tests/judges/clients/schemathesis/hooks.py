"""What the tool cannot make of the description by itself: what a push service takes, and what a document of XML says.

- A token may be longer than its push service allows: which one it is follows from other fields, or from the device.
- A map is a row of entries, and no two of them may have the same key: JSON Schema has no word for it.
- The text of a JSON object: of a schema with `contentMediaType` the tool makes any text, so it is told nothing of such elements.
- The tool writes null as the text `null`, which is a good name, and then reports that the server took what breaks the schema.
- A list of one thing is that thing in XML, an object without content is an empty text, and numbers and truths are texts: what has the
  wrong type in JSON has the right one in XML.
- Of many things in one document each is refused by itself, as in JSON, but only where it breaks a rule and is not of the wrong kind:
  documents of many are made of what is right alone. Messages of many are asked for in JSON alone here: all of them wait in the
  queue of one app, and where processors are short a dry run waits behind them for longer than the tool does.
"""

import schemathesis

XML = "application/xml"
#: Lengths of tokens that the description allows and not every push service takes.
DOUBTFUL_TOKEN = range(201, 4097)

#: What elements of this name are, as far as it is the same everywhere.
kinds = {}


def texts_of_json(schema):
    """Returns the names of the elements of a schema that are texts of JSON."""
    properties = schema.get("properties", {}) if isinstance(schema, dict) else {}
    return {name for name, one in properties.items() if isinstance(one, dict) and "contentMediaType" in one}


def asks_for_text_of_json(schema):
    return isinstance(schema, dict) and not texts_of_json(schema).isdisjoint(schema.get("required", []))


def without_texts_of_json(schema):
    if isinstance(schema, list):
        # An alternative that asks for such an element is none that the tool could fulfil.
        return [without_texts_of_json(one) for one in schema if not asks_for_text_of_json(one)]
    if not isinstance(schema, dict):
        return schema
    texts = texts_of_json(schema)
    left = {word: without_texts_of_json(one) for word, one in schema.items()}
    if texts:
        left["properties"] = {name: one for name, one in left["properties"].items() if name not in texts}
    return left


def says_null(value):
    if isinstance(value, list):
        return any(map(says_null, value))
    return value is None or isinstance(value, dict) and any(map(says_null, value.values()))


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
            if isinstance(one, dict) and one.get("type") in ("array", "object", "boolean", "integer"):
                kinds[name] = one["type"]
        for one in schema.values():
            note_kinds(one)


def is_no_breach(name, value):
    match kinds.get(name):
        case "array":
            return not isinstance(value, list)
        case "object":
            return value in ("", [])
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
    token = value.get("token")
    return isinstance(token, str) and len(token) in DOUBTFUL_TOKEN or any(map(has_a_doubtful_token, value.values()))


def is_wrong_one_of_many(case):
    return case.path.endswith("/bulk") and case.meta is not None and case.meta.generation.mode.is_negative


def is_lost_in_xml(case):
    body = case.body
    return is_wrong_one_of_many(case) or says_null(body) or has_a_key_twice(body) or holds_no_breach(body)


@schemathesis.hook
def before_load_schema(context, raw_schema):
    for path, item in raw_schema["paths"].items():
        for operation in item.values():
            content = operation.get("requestBody", {}).get("content", {})
            if path == "/v1/messages/bulk":
                content.pop(XML, None)
            if "schema" in content.get(XML, {}):
                content[XML]["schema"] = without_texts_of_json(content[XML]["schema"])
                note_kinds(content[XML]["schema"])


@schemathesis.hook
def filter_case(context, case):
    return not has_a_doubtful_token(case.body) and not (case.media_type == XML and is_lost_in_xml(case))
