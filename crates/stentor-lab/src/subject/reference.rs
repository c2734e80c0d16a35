//! Reference requests and responses, made from a seed by rules that every language can implement.
//!
//! Numbers come from x' = (1103515245 x + 12345) mod 2^31, starting from the seed mod 2^31; each is used as x' div 65536, 0 to 32767. A
//! letter is `a` plus the number mod 26.

use crate::word::words;
use std::collections::BTreeMap;
use stentor_wire::content::POINT_FIELDS;
use stentor_wire::{Content, Item, Point};

const MULTIPLIER: u64 = 1_103_515_245;
const INCREMENT: u64 = 12_345;
const MODULUS: u64 = 1 << 31;
const DISCARDED: u64 = 1 << 16;
const LETTERS: u64 = 26;
/// Letters of each field of a point of interest: 600 in all.
const FIELD_LETTERS: [usize; POINT_FIELDS] = [6, 24, 12, 334, 32, 16, 12, 10, 10, 40, 16, 40, 48];
/// Index of the longest of them.
const DESCRIPTION: usize = 3;
/// Letters of a text, and of the name of an object.
const TEXT_LETTERS: usize = 10;
/// Maximum of entries that a server makes on request.
const ENTRIES_MAX: u64 = 100_000;

/// The factor of a server that responds with lists of its own data, independently of the request; the numbers to sort are ids then.
pub const OWN: &str = "own";
/// The least of its own numbers, so that all have equally many digits, and the size of the range from which each number is drawn.
const OWN_NUMBER_MIN: u64 = 10_000;
const OWN_NUMBER_STEP: u64 = 7;
/// The least of the numbers that it sorts: of as many digits as the greatest of [`ENTRIES_MAX`] numbers.
const OWN_ORDER_MIN: u64 = 100_000;
/// Letters of each of its own texts, the maximum length of a text, and the maximum of such texts per entry.
const OWN_TEXT_LETTERS: u64 = 64;
const OWN_TEXTS_MAX: u64 = POINT_FIELDS as u64 - 1;
/// Minimum of letters in the name of an entry.
const OWN_NAME_LETTERS_MIN: u64 = 8;
/// The largest number of its own objects.
const OWN_COUNT_MAX: u64 = 4;

words! {
    /// The operation that a client requests from a server.
    pub enum Op {
        /// Returns the payload: factor `payload`, letters of text; with `reply=number` only the number of letters received.
        Echo = "echo",
        /// Sorts the numbers: factor `items`.
        Sort = "sort",
        /// Returns an array: factors `items` and `type` (`Int`, `String`, `Object`). The request is the text `TYPE ITEMS SEED`.
        Array = "array",
        /// Returns points of interest: factors `poi`, `letters` (of each point, 600 by default) and `page` (points per page). The request
        /// is the text `Point ITEMS SEED`, with pages `Point ITEMS SEED FROM`. A server with the factor `store` reads rows made from the
        /// run's own seed, independently of the seed in the request.
        Points = "points",
    }
}

/// A request and its response.
#[derive(Debug, Clone, PartialEq)]
pub struct ReferenceExchange {
    /// The request.
    pub request: Content,
    /// The expected response.
    pub answer: Content,
}

impl Op {
    /// Every operation.
    pub const ALL: [Self; 4] = [Self::Echo, Self::Sort, Self::Array, Self::Points];

    /// Makes the request of a cell; missing factors have small defaults.
    #[must_use]
    pub fn request(self, factors: &BTreeMap<String, String>, seed: u64) -> Content {
        let number = |name: &str, otherwise: u64| {
            let given = factors.get(name).and_then(|level| level.parse().ok());
            given.unwrap_or(otherwise).min(ENTRIES_MAX)
        };
        let mut source = SeededSource::new(seed);
        match self {
            Self::Echo => Content::Payload(source.letters(number("payload", 64) as usize)),
            Self::Sort => {
                Content::Numbers((0..number("items", 20)).map(|_| source.number().cast_signed()).collect())
            }
            Self::Array => {
                let kind = factors.get("type").map_or("Int", String::as_str);
                Content::Payload(format!("{kind} {} {seed}", number("items", 20)))
            }
            Self::Points => Content::Payload(format!("Point {} {seed}", number("poi", 3))),
        }
    }

    /// Makes request number `seq` of a run with the seed `base`.
    #[must_use]
    pub fn request_number(self, factors: &BTreeMap<String, String>, base: u64, seq: u64) -> Content {
        if self == Self::Sort && factors.contains_key(OWN) {
            return Content::Numbers(own_order(level(factors, "items").unwrap_or(20), base));
        }
        let page = if self == Self::Points { level(factors, "page").filter(|page| *page > 0) } else { None };
        let Some(page) = page else { return self.request(factors, base + seq) };
        let all = level(factors, "poi").unwrap_or(3);
        let from = (seq % all.div_ceil(page).max(1)) * page;
        let count = page.min(all - from.min(all));
        Content::Payload(format!("Point {count} {base} {from}"))
    }

    /// Computes the correct response in a run with the seed `base`; `None` if the request is invalid.
    #[must_use]
    pub fn answer_to(
        self,
        factors: &BTreeMap<String, String>,
        base: u64,
        request: Content,
    ) -> Option<Content> {
        match (self, &request) {
            (Self::Points, Content::Payload(text)) => {
                let mut wish = SampleRequest::read(text).filter(|wish| wish.kind == "Point")?;
                if factors.contains_key(OWN) {
                    let letters = level(factors, "letters").unwrap_or(600);
                    return Some(Content::Points(own_points(wish.from, wish.count, letters, base)));
                }
                if factors.contains_key("store") {
                    wish.seed = base;
                }
                Some(Content::Points(wish.points(factors)))
            }
            (Self::Echo, Content::Payload(text)) if factors.get("reply").is_some_and(|it| it == "number") => {
                Some(Content::Numbers(vec![text.len() as i64]))
            }
            (Self::Array, Content::Payload(text)) if factors.contains_key(OWN) => {
                let wish = SampleRequest::read(text)?;
                own_data(wish.kind, wish.count, base)
            }
            _ => self.answer(request),
        }
    }

    /// Returns request number `seq` of a run and its response.
    #[must_use]
    pub fn exchange_number(
        self,
        factors: &BTreeMap<String, String>,
        base: u64,
        seq: u64,
    ) -> Option<ReferenceExchange> {
        let request = self.request_number(factors, base, seq);
        let answer = self.answer_to(factors, base, request.clone())?;
        Some(ReferenceExchange { request, answer })
    }

    /// Computes the correct response; `None` if the request is invalid.
    #[must_use]
    pub fn answer(self, request: Content) -> Option<Content> {
        match (self, request) {
            (Self::Echo, content) => Some(content),
            (Self::Sort, Content::Numbers(mut numbers)) => {
                numbers.sort_unstable();
                Some(Content::Numbers(numbers))
            }
            (Self::Array | Self::Points, Content::Payload(wish)) => made(&wish),
            _ => None,
        }
    }

    /// Returns a request and its response.
    #[must_use]
    pub fn exchange(self, factors: &BTreeMap<String, String>, seed: u64) -> Option<ReferenceExchange> {
        let request = self.request(factors, seed);
        let answer = self.answer(request.clone())?;
        Some(ReferenceExchange { request, answer })
    }
}

/// The parsed request `KIND COUNT SEED`; points may start at a number: `Point COUNT SEED FROM`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SampleRequest<'a> {
    pub(crate) kind: &'a str,
    pub(crate) count: u64,
    pub(crate) seed: u64,
    pub(crate) from: u64,
}

impl<'a> SampleRequest<'a> {
    /// Parses the text; `None` if it is invalid or the count is too large.
    pub(crate) fn read(text: &'a str) -> Option<Self> {
        let mut words = text.split(' ');
        let kind = words.next()?;
        let mut number = || words.next()?.parse::<u64>().ok();
        let (count, seed) = (number()?, number()?);
        let from = number().unwrap_or(0);
        let is_small = from.checked_add(count).is_some_and(|all| all <= ENTRIES_MAX);
        is_small.then_some(Self { kind, count, seed, from })
    }

    /// Makes the request for all points of a cell.
    pub(crate) fn all(factors: &BTreeMap<String, String>, seed: u64) -> Self {
        let count = level(factors, "poi").unwrap_or(3).min(ENTRIES_MAX);
        Self { kind: "Point", count, seed, from: 0 }
    }

    /// Makes the points.
    pub(crate) fn points(&self, factors: &BTreeMap<String, String>) -> Vec<Point> {
        let letters = field_letters(factors);
        let mut source = SeededSource::new(self.seed);
        for _ in 0..self.from * letters.iter().sum::<usize>() as u64 {
            source.number();
        }
        (0..self.count).map(|_| source.point(letters)).collect()
    }
}

fn level(factors: &BTreeMap<String, String>, name: &str) -> Option<u64> {
    factors.get(name).and_then(|level| level.parse().ok())
}

/// Returns the letters of each field; the difference from the usual total is applied to the description.
fn field_letters(factors: &BTreeMap<String, String>) -> [usize; POINT_FIELDS] {
    let mut letters = FIELD_LETTERS;
    let usual: usize = FIELD_LETTERS.iter().sum();
    let wished = level(factors, "letters").map_or(usual, |wished| wished.min(ENTRIES_MAX) as usize);
    letters[DESCRIPTION] = (letters[DESCRIPTION] + wished).saturating_sub(usual).max(1);
    letters
}

/// Makes the requested entries.
fn made(wish: &str) -> Option<Content> {
    let wish = SampleRequest::read(wish)?;
    let (count, mut source) = (wish.count, SeededSource::new(wish.seed));
    Some(match wish.kind {
        "Int" => Content::Numbers((0..count).map(|_| source.number().cast_signed()).collect()),
        "String" => Content::Texts((0..count).map(|_| source.letters(TEXT_LETTERS)).collect()),
        "Object" => Content::Objects((0..count).map(|_| source.item()).collect()),
        "Point" => Content::Points(wish.points(&BTreeMap::new())),
        _ => return None,
    })
}

/// Makes a server's own data in its listing order; every exchange of a run requests the same data. Numbers grow with their index, texts and
/// the names of objects are sorted, an object has a small number and the price 0.
#[must_use]
pub fn own_data(kind: &str, count: u64, seed: u64) -> Option<Content> {
    let mut source = SeededSource::new(seed);
    let names = |source: &mut SeededSource| {
        let mut names: Vec<String> = (0..count).map(|_| source.letters(TEXT_LETTERS)).collect();
        names.sort_unstable();
        names
    };
    Some(match kind {
        "Int" => Content::Numbers(
            (0..count)
                .map(|place| OWN_NUMBER_MIN + OWN_NUMBER_STEP * place + source.number() % OWN_NUMBER_STEP)
                .map(u64::cast_signed)
                .collect(),
        ),
        "String" => Content::Texts(names(&mut source)),
        "Object" => {
            let names = names(&mut source);
            let item =
                |name| Item { id: (1 + source.number() % OWN_COUNT_MAX).cast_signed(), name, price: 0.0 };
            Content::Objects(names.into_iter().map(item).collect())
        }
        _ => return None,
    })
}

/// Makes the numbers that a server receives in any order and lists sorted; all are distinct, because they are ids.
#[must_use]
pub fn own_order(count: u64, seed: u64) -> Vec<i64> {
    let mut source = SeededSource::new(seed);
    let number = |place| OWN_ORDER_MIN + OWN_NUMBER_STEP * place + source.number() % OWN_NUMBER_STEP;
    (0..count.min(ENTRIES_MAX)).map(number).map(u64::cast_signed).collect()
}

/// Makes a server's own entries with the letters of a point of interest: a name in the first field, then texts of 64 letters in
/// alphabetical order, as many as fit, and empty strings in the remaining fields.
#[must_use]
pub fn own_points(from: u64, count: u64, letters: u64, seed: u64) -> Vec<Point> {
    let texts = (letters.saturating_sub(OWN_NAME_LETTERS_MIN) / OWN_TEXT_LETTERS).min(OWN_TEXTS_MAX);
    let name = (letters.saturating_sub(texts * OWN_TEXT_LETTERS)).clamp(OWN_NAME_LETTERS_MIN, 256);
    let mut source = SeededSource::new(seed);
    let mut point = || {
        let name = source.letters(name as usize);
        let mut texts: Vec<String> = (0..texts).map(|_| source.letters(OWN_TEXT_LETTERS as usize)).collect();
        texts.sort_unstable();
        let mut fields: [String; POINT_FIELDS] = std::array::from_fn(|_| String::new());
        fields.iter_mut().zip(std::iter::once(name).chain(texts)).for_each(|(field, text)| *field = text);
        Point::of(fields)
    };
    (0..from.saturating_add(count).min(ENTRIES_MAX)).map(|_| point()).skip(from as usize).collect()
}

/// A source of numbers and letters, derived from a seed.
struct SeededSource(u64);

impl SeededSource {
    const fn new(seed: u64) -> Self {
        Self(seed % MODULUS)
    }

    const fn number(&mut self) -> u64 {
        self.0 = (self.0 * MULTIPLIER + INCREMENT) % MODULUS;
        self.0 / DISCARDED
    }

    fn letters(&mut self, count: usize) -> String {
        (0..count).map(|_| char::from(b'a' + (self.number() % LETTERS) as u8)).collect()
    }

    /// Makes a number, a name, and a price in quarters, which every format represents exactly.
    fn item(&mut self) -> Item {
        let id = self.number().cast_signed();
        let name = self.letters(TEXT_LETTERS);
        Item { id, name, price: self.number() as f64 / 4.0 }
    }

    fn point(&mut self, letters: [usize; POINT_FIELDS]) -> Point {
        Point::of(letters.map(|letters| self.letters(letters)))
    }
}

/// A digest of responses, in 16 hexadecimal digits: FNV-1a of 64 bits over the fields of every response in order, each as text followed by
/// a line feed. Numbers are written in decimal, prices in quarters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    /// Adds a response.
    pub fn add(&mut self, content: &Content) {
        match content {
            Content::Payload(text) => self.field(text),
            Content::Numbers(numbers) => numbers.iter().for_each(|number| self.field(&number.to_string())),
            Content::Texts(texts) => texts.iter().for_each(|text| self.field(text)),
            Content::Objects(items) => items.iter().for_each(|item| {
                self.field(&item.id.to_string());
                self.field(&item.name);
                self.field(&((item.price * 4.0).round() as i64).to_string());
            }),
            Content::Points(points) => {
                points.iter().flat_map(Point::fields).for_each(|field| self.field(field))
            }
        }
    }

    /// Returns the hexadecimal digits.
    #[must_use]
    pub fn hex(&self) -> String {
        format!("{:016x}", self.0)
    }

    fn field(&mut self, text: &str) {
        for byte in text.bytes().chain([b'\n']) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}
