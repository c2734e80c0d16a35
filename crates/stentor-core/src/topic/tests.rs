use proptest::prelude::*;

use super::*;

fn holds(text: &str, topics: &[&str]) -> bool {
    let condition = Condition::parse(text).expect("parses");
    condition.expr().holds(&|topic| topics.contains(&topic.as_str()))
}

#[test]
fn the_documented_example_means_what_it_says() {
    let text = "'a' in topics && ('b' in topics || !('c' in topics))";
    assert!(holds(text, &["a"]));
    assert!(holds(text, &["a", "b", "c"]));
    assert!(!holds(text, &["a", "c"]));
    assert!(!holds(text, &["b"]));
}

#[test]
fn and_binds_stronger_than_or() {
    let text = "'a' in topics || 'b' in topics && 'c' in topics";
    assert!(holds(text, &["a"]));
    assert!(!holds(text, &["b"]));
}

#[test]
fn a_broken_condition_says_at_which_byte() {
    let wrong = Condition::parse("'a' in topics && ").expect_err("refused");
    assert_eq!(wrong.field, "condition");
    assert!(wrong.problem.contains("at byte 17"), "{wrong}");
    for text in [
        "",
        "'a'",
        "'a' in",
        "('a' in topics",
        "'a' in topics)",
        "'a in topics",
        "a in topics",
        "'a b' in topics",
    ] {
        assert!(Condition::parse(text).is_err(), "{text}");
    }
}

#[test]
fn nesting_and_topics_are_limited() {
    let deep = format!("{}'a' in topics{}", "(".repeat(5_00), ")".repeat(5_00));
    assert!(Condition::parse(&deep).expect_err("refused").problem.contains("nested"));
    let many = vec!["'a' in topics"; 17].join(" || ");
    assert!(Condition::parse(&many).expect_err("refused").problem.contains("more than 16"));
    assert!(Condition::parse(&"!".repeat(5_000)).is_err());
}

fn any_expr() -> impl Strategy<Value = Expr> {
    let leaf = "[a-c]".prop_map(|name| Expr::In(TopicName::new(name).expect("fits")));
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|one| Expr::Not(Box::new(one))),
            prop::collection::vec(inner.clone(), 2..3).prop_map(Expr::All),
            prop::collection::vec(inner, 2..3).prop_map(Expr::Any),
        ]
    })
}

proptest! {
    #[test]
    fn a_written_expression_is_read_with_the_same_meaning(expr in any_expr(), bits in 0..8_u8) {
        let has = |topic: &TopicName| bits & 1 << (topic.as_str().as_bytes()[0] - b'a') != 0;
        let read = Condition::parse(&expr.to_string()).expect("what we write parses");
        prop_assert_eq!(read.expr().holds(&has), expr.holds(&has));
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "[ab'\"()!&| intopcsé]{0,60}") {
        let _ = Condition::parse(&text);
    }
}
