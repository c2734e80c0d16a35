//! The request headers of WNS and their validation.

use http::header::{CONTENT_TYPE, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderName};

const TYPE: HeaderName = HeaderName::from_static("x-wns-type");
const TTL: HeaderName = HeaderName::from_static("x-wns-ttl");
const CACHE_POLICY: HeaderName = HeaderName::from_static("x-wns-cache-policy");
const REQUEST_FOR_STATUS: HeaderName = HeaderName::from_static("x-wns-requestforstatus");
const TAG: HeaderName = HeaderName::from_static("x-wns-tag");
const PRIORITY: HeaderName = HeaderName::from_static("x-wns-priority");
const SUPPRESS_POPUP: HeaderName = HeaderName::from_static("x-wns-suppresspopup");

const MAX_TAG_CHARS: usize = 16;

/// The type of a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WnsType {
    Toast,
    Tile,
    Badge,
    Raw,
}

/// The validated headers of a notification.
#[derive(Debug)]
pub(super) struct WnsHeaders<'a> {
    pub(super) kind: WnsType,
    pub(super) tag: Option<&'a str>,
    pub(super) ttl_s: Option<u64>,
    /// True if the notification waits for a device that is away.
    pub(super) is_cached: bool,
    pub(super) wants_status: bool,
    /// From 1, the highest, to 4.
    pub(super) priority: u8,
}

impl WnsType {
    fn of(word: &str) -> Option<Self> {
        [Self::Toast, Self::Tile, Self::Badge, Self::Raw].into_iter().find(|kind| kind.word() == word)
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Toast => "wns/toast",
            Self::Tile => "wns/tile",
            Self::Badge => "wns/badge",
            Self::Raw => "wns/raw",
        }
    }

    fn content_type(self) -> &'static str {
        if self == Self::Raw { "application/octet-stream" } else { "text/xml" }
    }

    fn priority(self) -> u8 {
        match self {
            Self::Toast => 1,
            Self::Tile | Self::Badge => 2,
            Self::Raw => 3,
        }
    }
}

impl<'a> WnsHeaders<'a> {
    /// Reads the headers; the error is a sentence.
    pub(super) fn read(map: &'a HeaderMap) -> Result<Self, &'static str> {
        let kind = text(map, &TYPE)?.and_then(WnsType::of);
        let kind = kind.ok_or("X-WNS-Type must be wns/toast, wns/tile, wns/badge or wns/raw.")?;
        check_content(map, kind)?;
        let ttl_s = read_ttl(map)?;
        let cache_policy = read_choice(map, &CACHE_POLICY, ["cache", "no-cache"])?;
        // Reported of WNS when a sender of Web Push writes a time to live of 0.
        if ttl_s == Some(0) && cache_policy == Some(true) {
            return Err("Ttl value conflicts with X-WNS-Cache-Policy.");
        }
        if map.contains_key(SUPPRESS_POPUP) {
            return Err("X-WNS-SuppressPopup is for channels of Windows Phone.");
        }
        let is_cached_by_default = matches!(kind, WnsType::Tile | WnsType::Badge);
        Ok(Self {
            kind,
            tag: read_tag(map)?,
            ttl_s,
            is_cached: cache_policy.unwrap_or(is_cached_by_default),
            wants_status: read_choice(map, &REQUEST_FOR_STATUS, ["true", "false"])?.unwrap_or(false),
            priority: read_priority(map)?.unwrap_or(kind.priority()),
        })
    }
}

/// Returns the only value of a header, if there is one.
fn text<'a>(map: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, &'static str> {
    let mut values = map.get_all(name).iter();
    let Some(first) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err("A header was specified more than once.");
    }
    first.to_str().map(Some).map_err(|_| "A header has letters that are not ASCII.")
}

fn check_content(map: &HeaderMap, kind: WnsType) -> Result<(), &'static str> {
    if map.contains_key(TRANSFER_ENCODING) {
        return Err("Chunking is not supported.");
    }
    let content_type = text(map, &CONTENT_TYPE)?.unwrap_or_default();
    let bare = content_type.split(';').next().unwrap_or_default().trim();
    let fits = bare.eq_ignore_ascii_case(kind.content_type());
    if fits { Ok(()) } else { Err("Content-Type must be text/xml, or application/octet-stream for wns/raw.") }
}

fn read_ttl(map: &HeaderMap) -> Result<Option<u64>, &'static str> {
    let Some(value) = text(map, &TTL)? else { return Ok(None) };
    let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { Ok(Some(value.parse().unwrap_or(u64::MAX))) } else { Err("X-WNS-TTL must be an integer.") }
}

/// Reads a header with two possible words; true is the first of them.
fn read_choice(map: &HeaderMap, name: &HeaderName, words: [&str; 2]) -> Result<Option<bool>, &'static str> {
    let Some(value) = text(map, name)? else { return Ok(None) };
    let place = words.iter().position(|word| value.eq_ignore_ascii_case(word));
    place.map(|place| Some(place == 0)).ok_or("A header has an unknown value.")
}

fn read_tag(map: &HeaderMap) -> Result<Option<&str>, &'static str> {
    let Some(tag) = text(map, &TAG)? else { return Ok(None) };
    let sane =
        (1..=MAX_TAG_CHARS).contains(&tag.len()) && tag.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if sane { Ok(Some(tag)) } else { Err("X-WNS-Tag must have at most 16 letters and digits.") }
}

fn read_priority(map: &HeaderMap) -> Result<Option<u8>, &'static str> {
    match text(map, &PRIORITY)? {
        None => Ok(None),
        Some("1") => Ok(Some(1)),
        Some("2") => Ok(Some(2)),
        Some("3") => Ok(Some(3)),
        Some("4") => Ok(Some(4)),
        Some(_) => Err("X-WNS-PRIORITY must be between 1 and 4."),
    }
}
