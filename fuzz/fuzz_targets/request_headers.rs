//! Accept and conditional headers: several lines of a header are one list, and a condition on a list holds as for its members.
#![no_main]
use http::header::{ACCEPT, ACCEPT_ENCODING, HeaderMap, HeaderName, HeaderValue, IF_MATCH, IF_NONE_MATCH};
use libfuzzer_sys::fuzz_target;
use stentor_server::face::rest::{accepted_media_type, lets_change, tag_of_reply};

const NAMES: [HeaderName; 4] = [ACCEPT, ACCEPT_ENCODING, IF_MATCH, IF_NONE_MATCH];
/// The content of the response: long enough to be compressed.
const SHOWN: &[u8] = &[b' '; 2_048];
/// Placeholder in an input for the hash in the content's tag, which a fuzzer cannot guess.
const HASH: &str = "NOW";

fn one(name: &HeaderName, value: HeaderValue) -> HeaderMap {
    HeaderMap::from_iter([(name.clone(), value)])
}

fn joined(headers: &HeaderMap, name: &HeaderName) -> Option<HeaderValue> {
    let lines: Vec<_> = headers.get_all(name).iter().map(HeaderValue::as_bytes).collect();
    HeaderValue::from_bytes(&lines.join(&b", "[..])).ok().filter(|_| !lines.is_empty())
}

fn read(text: &str) -> HeaderMap {
    let (tag, _) = tag_of_reply(&HeaderMap::new(), SHOWN).expect("no condition");
    let hash = tag.to_str().expect("text").trim_matches('"').to_owned();
    let mut headers = HeaderMap::new();
    for (name, value) in text.lines().filter_map(|line| line.split_once(':')) {
        let name = NAMES.iter().find(|known| known.as_str() == name);
        let value = HeaderValue::from_bytes(value.trim().replace(HASH, &hash).as_bytes());
        if let (Some(name), Ok(value)) = (name, value) {
            headers.append(name, value);
        }
    }
    headers
}

fuzz_target!(|text: &str| {
    let headers = read(text);
    let lists = NAMES.iter().filter_map(|name| Some((name.clone(), joined(&headers, name)?)));
    let lists = HeaderMap::from_iter(lists);
    assert_eq!(accepted_media_type(&headers), accepted_media_type(&lists));
    // A tag that spans lines becomes a different tag when the lines are joined.
    if !text.contains('"') {
        assert_eq!(tag_of_reply(&headers, SHOWN), tag_of_reply(&lists, SHOWN));
    }

    let mut plain = headers.clone();
    plain.remove(IF_MATCH);
    plain.remove(IF_NONE_MATCH);
    assert_eq!(tag_of_reply(&plain, SHOWN).is_ok(), accepted_media_type(&plain).is_some());
    if let Ok((tag, is_known)) = tag_of_reply(&plain, SHOWN) {
        assert!(!is_known);
        let [is, is_not] =
            [IF_MATCH, IF_NONE_MATCH].map(|name| lets_change(&one(&name, tag.clone()), Some(SHOWN)));
        assert_eq!((is, is_not), (Ok(true), Ok(false)));
        plain.insert(IF_NONE_MATCH, tag.clone());
        assert_eq!(tag_of_reply(&plain, SHOWN), Ok((tag, true)));
    }
    for (name, is_there) in [(IF_MATCH, true), (IF_NONE_MATCH, false)] {
        let any = one(&name, HeaderValue::from_static("*"));
        assert_eq!([Some(SHOWN), None].map(|shown| lets_change(&any, shown)), [Ok(is_there), Ok(!is_there)]);
        members(&headers, &name, is_there);
    }
});

/// Checks that a list of tags matches if and only if one of its members does.
fn members(headers: &HeaderMap, name: &HeaderName, is_meant: bool) {
    let members =
        headers.get_all(name).iter().map(|member| lets_change(&one(name, member.clone()), Some(SHOWN)));
    let Ok(members) = members.collect::<Result<Vec<_>, _>>() else { return };
    let Some(list) = joined(headers, name) else { return };
    // A list with too many tags is refused, and so is `*` among tags.
    if let Ok(whole) = lets_change(&one(name, list), Some(SHOWN)) {
        assert_eq!(whole == is_meant, members.contains(&is_meant));
    }
}
