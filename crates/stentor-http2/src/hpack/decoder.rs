//! Reads header blocks.

use http::{HeaderMap, HeaderName, HeaderValue};

use super::table::{STATIC, Table};
use super::{ENTRY_OVERHEAD_BYTES, TABLE_DEFAULT_BYTES, huffman, integer};

/// What is wrong with a header block: the end of its connection (RFC 9113, section 4.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed(pub(crate) &'static str);

/// What is taken from one header block.
#[derive(Debug, Default)]
pub(crate) struct Gather {
    /// Whether headers are kept whatever the status is; otherwise those of 2xx are passed over.
    pub(crate) keep_all: bool,
    /// Most bytes of headers to keep.
    pub(crate) max_bytes: usize,
    /// The status, once it was seen.
    pub(crate) status: Option<u16>,
    /// All other fields, as far as they are kept.
    pub(crate) headers: HeaderMap,
    /// Whether some field was no HTTP, or they were too many.
    pub(crate) invalid: bool,
    bytes: usize,
}

impl Gather {
    pub(crate) fn new(keep_all: bool, max_bytes: usize) -> Self {
        Self { keep_all, max_bytes, ..Self::default() }
    }

    /// Returns whether the rest of the block may be passed over.
    fn has_enough(&self) -> bool {
        !self.keep_all && self.status.is_some_and(|status| (200..300).contains(&status))
    }

    fn field(&mut self, name: &[u8], value: &[u8]) {
        self.bytes += name.len() + value.len() + ENTRY_OVERHEAD_BYTES;
        if name == b":status" {
            self.status = status(value);
            self.invalid |= self.status.is_none();
        } else if !self.has_enough() && self.bytes <= self.max_bytes {
            match (HeaderName::from_lowercase(name), HeaderValue::from_bytes(value)) {
                (Ok(name), Ok(value)) => drop(self.headers.try_append(name, value)),
                _ => self.invalid = true,
            }
        }
    }
}

fn status(value: &[u8]) -> Option<u16> {
    let digits: [u8; 3] = value.try_into().ok()?;
    let number = digits.iter().try_fold(0, |sum, digit| Some(sum * 10 + char::from(*digit).to_digit(10)?))?;
    (100..600).contains(&number).then_some(number as u16)
}

/// The reading side of one connection's header compression.
#[derive(Debug)]
pub(crate) struct Decoder {
    pub(super) table: Table,
    name: Vec<u8>,
    value: Vec<u8>,
}

/// How a string is to be read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Read,
    PassOver,
}

impl Decoder {
    pub(crate) fn new() -> Self {
        Self { table: Table::new(), name: Vec::new(), value: Vec::new() }
    }

    /// Returns the largest size of the table.
    pub(crate) const fn table_bytes(&self) -> usize {
        self.table.max()
    }

    /// Reads one whole block.
    pub(crate) fn decode(&mut self, mut block: &[u8], into: &mut Gather) -> Result<(), Malformed> {
        let mut fields_seen = false;
        while let Some(&first) = block.first() {
            match first {
                0x80.. => self.indexed(&mut block, into)?,
                0x40.. => self.literal(&mut block, 6, into)?,
                0x20.. if fields_seen => {
                    return Err(Malformed("a table size update stands after a field"));
                }
                0x20.. => self.resize(&mut block)?,
                _ => self.literal(&mut block, 4, into)?,
            }
            fields_seen |= first & 0xe0 != 0x20;
        }
        Ok(())
    }

    fn resize(&mut self, block: &mut &[u8]) -> Result<(), Malformed> {
        let max = integer::read(block, 5)?;
        if max > TABLE_DEFAULT_BYTES {
            return Err(Malformed("a table size update is above the limit"));
        }
        self.table.resize(max);
        Ok(())
    }

    fn indexed(&self, block: &mut &[u8], into: &mut Gather) -> Result<(), Malformed> {
        let index = integer::read(block, 7)?;
        if !into.has_enough() {
            let (name, value) = self.entry(index)?;
            into.field(name, value);
        } else if index == 0 || index > STATIC.len() + self.table.len() {
            return Err(NO_SUCH_ENTRY);
        }
        Ok(())
    }

    /// Reads a literal field; a prefix of six bits means that it enters the table.
    fn literal(&mut self, block: &mut &[u8], prefix: u32, into: &mut Gather) -> Result<(), Malformed> {
        let enters = prefix == 6;
        let want = if enters || !into.has_enough() { Use::Read } else { Use::PassOver };
        let index = integer::read(block, prefix)?;
        let mut name = std::mem::take(&mut self.name);
        let mut value = std::mem::take(&mut self.value);
        let read =
            self.read_name(index, block, want, &mut name).and_then(|()| read_string(block, want, &mut value));
        if read.is_ok() && want == Use::Read {
            into.field(&name, &value);
            if enters {
                self.table.insert(&name, &value);
            }
        }
        (self.name, self.value) = (name, value);
        read
    }

    fn read_name(
        &self,
        index: usize,
        block: &mut &[u8],
        want: Use,
        name: &mut Vec<u8>,
    ) -> Result<(), Malformed> {
        if index == 0 {
            return read_string(block, want, name);
        }
        name.clear();
        name.extend_from_slice(self.entry(index)?.0);
        Ok(())
    }

    fn entry(&self, index: usize) -> Result<(&[u8], &[u8]), Malformed> {
        let at = index.checked_sub(1).ok_or(NO_SUCH_ENTRY)?;
        if let Some((name, value)) = STATIC.get(at) {
            return Ok((name.as_bytes(), value.as_bytes()));
        }
        let entry = self.table.get(at - STATIC.len()).ok_or(NO_SUCH_ENTRY)?;
        Ok((entry.name(), entry.value()))
    }
}

const NO_SUCH_ENTRY: Malformed = Malformed("a header block names an entry that does not exist");

fn read_string(block: &mut &[u8], want: Use, into: &mut Vec<u8>) -> Result<(), Malformed> {
    let coded = block.first().is_some_and(|first| first & 0x80 != 0);
    let length = integer::read(block, 7)?;
    let (text, rest) = block.split_at_checked(length).ok_or(Malformed("a header string ends early"))?;
    *block = rest;
    if want == Use::PassOver {
        return Ok(());
    }
    into.clear();
    if coded {
        return huffman::decode(text, into);
    }
    into.extend_from_slice(text);
    Ok(())
}
