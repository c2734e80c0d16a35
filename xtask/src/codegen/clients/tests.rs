use serde_json::json;

use super::*;

fn document() -> serde_json::Value {
    json!({
        "tags": [{"name": "devices", "description": "Devices."}],
        "components": {"schemas": {
            "DeviceId": {"type": "string", "pattern": "^dev_"},
            "Word": {"type": "string", "enum": ["one", "two"]},
            "Choice": {"oneOf": [
                {"type": "object", "properties": {"device": {"$ref": "#/components/schemas/DeviceId"}}, "required": ["device"]},
                {"type": "string", "enum": ["everyone"]},
            ]},
            "Row": {"type": "object", "required": ["class"], "properties": {
                "class": {"type": "string"}, "word": {"oneOf": [{"$ref": "#/components/schemas/Word"}, {"type": "null"}]},
            }},
            "RowList": {"type": "object", "required": ["rows"], "properties": {
                "rows": {"type": "array", "items": {"$ref": "#/components/schemas/Row"}}, "next": {"type": ["string", "null"]},
            }},
        }},
        "paths": {"/v1/devices/{device}": {"get": {
            "operationId": "devices_list", "tags": ["devices"], "summary": "Says \"so\".",
            "parameters": [
                {"name": "device", "in": "path", "required": true, "schema": {"type": "string"}},
                {"name": "after", "in": "query", "schema": {"type": "string"}},
            ],
            "responses": {"200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/RowList"}}}}},
        }}},
    })
}

fn text_of(path: &str) -> String {
    let texts = texts(&document().to_string()).unwrap();
    texts.into_iter().find(|(at, _)| at.ends_with(path)).unwrap().1
}

#[test]
fn python_gets_types_for_records_choices_and_words_of_the_language() {
    let types = text_of("_types.py");
    assert!(
        types.contains("_RowRequired = TypedDict(\"_RowRequired\", {\n    \"class\": \"str\",\n})"),
        "{types}"
    );
    assert!(types.contains("    word: Optional[Word]"), "{types}");
    assert!(types.contains("Choice = Union[ChoiceDevice, Literal['everyone']]"), "{types}");
}

#[test]
fn a_list_with_a_cursor_can_be_gone_through_in_both_languages() {
    let (python, script) = (text_of("_operations.py"), text_of("operations.ts"));
    assert!(
        python.contains(
            "def iterate(self, device: str, *, after: Union[str, Unset] = UNSET) -> Iterator[_types.Row]"
        ),
        "{python}"
    );
    assert!(python.contains("Says 'so'."), "{python}");
    assert!(
        script.contains("async *iterate(device: string, query: DevicesListQuery = {}, options"),
        "{script}"
    );
}

#[test]
fn a_tag_that_is_not_told_is_an_error() {
    let mut document = document();
    document["tags"] = json!([]);
    assert!(texts(&document.to_string()).is_err());
}
