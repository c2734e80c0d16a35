"""The log of a server, each line held against the schema of a line: log_judge.py SCHEMA LOG"""

import json
import sys

import jsonschema_rs

SCHEMA, LOG = sys.argv[1:]
#: What a log shows of requests that are answered and of those that are refused.
MESSAGES = {"refused", "answered"}

with open(SCHEMA, encoding="utf-8") as file:
    schema = json.load(file)
jsonschema_rs.meta.validate(schema)
validator = jsonschema_rs.validator_for(schema)
messages, spans = set(), set()
with open(LOG, encoding="utf-8") as file:
    # What follows the last line end is a line that the server is writing.
    lines = file.read().split("\n")[:-1]
for number, line in enumerate(lines, 1):
    event = json.loads(line)
    for error in validator.iter_errors(event):
        raise SystemExit(f"line {number}: {error}\n{line}")
    messages.add(event["fields"]["message"])
    spans.update(span["name"] for span in event.get("spans", []))
assert messages >= MESSAGES and "request" in spans, f"the log is too short: {messages}, {spans}"
assert list(validator.iter_errors({"level": "INFO"})), "the schema refuses what is no line"
print(f"{len(lines)} lines: the judge is content")
