use super::*;

/// A face without operations.
const BARE: Face = Face { name: "bare", path: None, description: "none", others: &[], carries: |_| false };
/// A face that lacks one operation.
const SHORT: Face = Face {
    name: "short",
    path: None,
    description: "none",
    others: &[],
    carries: |name| name != "topics.list",
};

#[test]
fn a_face_that_lacks_an_operation_is_a_failure_that_names_both() {
    let failure = list(&[FACES[0], SHORT], Output::new(true)).expect_err("refused");
    assert_eq!(failure.to_string(), "a face lacks an operation: topics.list in short");
}

#[test]
fn a_face_that_carries_nothing_lacks_each_operation_and_stands_at_none() {
    let faces = [FACES[0], BARE];
    let lacks: Vec<_> = OPERATIONS.iter().flat_map(|facts| missing(&faces, facts)).collect();
    assert_eq!(lacks.len(), OPERATIONS.len());
    assert!(lacks.iter().all(|lack| lack.ends_with(" in bare")), "{lacks:?}");
    assert_eq!(operation(&faces, &OPERATIONS[0])["faces"], json!(["rest"]));
    assert!(list(&faces, Output::new(true)).is_err());
}

#[test]
fn no_face_of_ours_lacks_an_operation() {
    list(FACES, Output::new(true)).expect("each carries all");
}
