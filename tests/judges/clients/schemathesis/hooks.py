"""What XML looks like is told by the XML schema of the WSDL, which this tool does not read: it would send any document.

With schemas for XML in the description, schemathesis 4.32.5 writes documents that the server reads, but for two things that JSON Schema has
no word for: a map is a row of entries whose keys differ, and an object of any content is the text of its JSON. It also writes null as the
text `null`, which is a good name, and reports `ST201 Schema-violating request accepted` for `<CreateApp><name>null</name></CreateApp>`.
"""

import schemathesis


@schemathesis.hook
def before_load_schema(context, raw_schema):
    for item in raw_schema["paths"].values():
        for operation in item.values():
            content = operation.get("requestBody", {}).get("content", {})
            if "application/json" in content:
                content.pop("application/xml", None)
