//! Writers produce one form of each value, readers accept every form of it, and hostile documents are refused.

use super::*;
use proptest::prelude::*;

mod golden;
mod hostile;
mod services;
mod trips;

fn limits() -> DocumentLimits {
    DocumentLimits::default()
}

fn small_content() -> Content {
    Content::Objects(vec![Item { id: -7, name: "a<b> & \"c\"".into(), price: 1.5 }])
}

fn point(number: usize) -> Point {
    Point::of(std::array::from_fn(|field| format!("{number}-{field}")))
}

/// Text that XML can carry, with everything that needs escapes.
fn text() -> impl Strategy<Value = String> {
    "(\\PC|[\t\n\r<>&\"'é😀]){0,12}"
}

fn content() -> impl Strategy<Value = Content> {
    let item = (any::<i64>(), text(), number()).prop_map(|(id, name, price)| Item { id, name, price });
    let point = prop::array::uniform13(text()).prop_map(Point::of);
    prop_oneof![
        text().prop_map(Content::Payload),
        prop::collection::vec(any::<i64>(), 0..8).prop_map(Content::Numbers),
        prop::collection::vec(text(), 0..8).prop_map(Content::Texts),
        prop::collection::vec(item, 0..6).prop_map(Content::Objects),
        prop::collection::vec(point, 0..4).prop_map(Content::Points),
    ]
}

/// Any finite number.
fn number() -> impl Strategy<Value = f64> {
    any::<f64>().prop_filter("finite", |number| number.is_finite())
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Nil),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        number().prop_map(Value::Double),
        text().prop_map(Value::Text),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let field = (text(), inner.clone());
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(Value::List),
            prop::collection::vec(field, 0..4).prop_map(unique).prop_map(Value::Record),
        ]
    })
}

fn unique(fields: Vec<(String, Value)>) -> Vec<(String, Value)> {
    let mut names = std::collections::BTreeSet::new();
    fields.into_iter().filter(|(name, _)| names.insert(name.clone())).collect()
}
