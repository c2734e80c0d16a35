//! The rule of words.

use super::{file, lines, sample};
use crate::tidy::docs;
use crate::tidy::words::{Exemption, check, check_with, parts};

#[test]
fn names_are_split_in_every_case() {
    assert_eq!(parts("push_token"), ["push", "token"]);
    assert_eq!(parts("PushToken"), ["push", "token"]);
    assert_eq!(parts("FILE_LINES_MAX"), ["file", "lines", "max"]);
    assert_eq!(parts("HTTPServer2"), ["http", "server2"]);
    assert_eq!(parts("mockingbird"), ["mockingbird"]);
}

#[test]
fn a_wrong_word_in_any_kind_of_public_name_is_found() {
    for text in [
        "pub fn broadcast_all() {}",
        "pub struct RecipientList;",
        "pub struct A { pub subscriber: u8 }",
        "pub enum A { Blast }",
        "pub enum A { B { recipient: u8 } }",
        "pub trait Graveyard {}",
        "pub trait A { fn enroll(&self); }",
        "pub mod mock {}",
        "pub const MAX_PPS: u8 = 1;",
        "pub type Sut = u8;",
        "pub struct A; impl A { pub fn mock_it() {} }",
        "pub(crate) fn mock_server() {}",
    ] {
        assert_eq!(check(&sample(text)).len(), 1, "{text}");
    }
}

#[test]
fn our_words_pass() {
    for text in [
        "pub fn register_device() {}",
        "pub enum Target { Device, Everyone }",
        "pub struct Campaign { pub audience: u64 }",
        "pub fn apps() {}",
        "fn mock() {}",
        "use tokio::sync::broadcast;",
        "#[cfg(test)] mod tests { pub fn mock() {} }",
    ] {
        assert_eq!(check(&sample(text)), Vec::new(), "{text}");
    }
}

#[test]
fn the_sentence_says_what_to_say_instead() {
    let finding = check(&sample("\npub struct MockStore;")).remove(0);
    assert_eq!(finding.line, 2);
    assert!(finding.sentence.contains("Emulator, Stub or Sink"), "{finding}");
}

#[test]
fn an_exemption_holds_in_its_folder_only() {
    let exemptions = [Exemption {
        folder: "crates/p/src/apns/",
        word: "broadcast",
        reason: "Apple's name of the feature",
    }];
    let text = "pub struct BroadcastChannel;";
    assert_eq!(check_with(&file("crates/p/src/apns/channel.rs", text), &exemptions), Vec::new());
    assert_eq!(check_with(&file("crates/p/src/fcm/channel.rs", text), &exemptions).len(), 1);
    assert_eq!(check_with(&file("crates/p/src/apns/mock.rs", "pub struct Mock;"), &exemptions).len(), 1);
}

#[test]
fn what_a_function_returns_is_said_with_returns() {
    let wrong =
        "/// Gives the sum.\nfn a() -> u8 { 1 }\n/// Tells everybody.\nfn b() {}\n/// Says why.\nstruct C;";
    assert_eq!(lines(&docs::check(&sample(wrong))), [1, 3, 5]);
    let right =
        "/// Returns the sum of both\n/// numbers.\nfn a() -> u8 { 1 }\n/// Notifies everybody.\nfn b() {}";
    assert!(docs::check(&sample(right)).is_empty());
    for empty in ["Why", "How many", "Devices"] {
        assert_eq!(lines(&docs::check(&sample(&format!("/// {empty}.\nstruct A;")))), [1], "{empty}");
    }
}
