//! Names of the code as words.

use crate::tidy::vendors::parts;

#[test]
fn names_are_split_in_every_case() {
    assert_eq!(parts("push_token"), ["push", "token"]);
    assert_eq!(parts("PushToken"), ["push", "token"]);
    assert_eq!(parts("FILE_LINES_MAX"), ["file", "lines", "max"]);
    assert_eq!(parts("HTTPServer2"), ["http", "server2"]);
    assert_eq!(parts("mockingbird"), ["mockingbird"]);
}
