//! Protocol Buffers field by field, for schemas known only at run time.

use prost::encoding::{WireType, decode_key, decode_varint, encode_key, encode_varint};

use crate::WireError;

/// The wire type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireValue {
    /// An integer of variable length.
    Varint,
    /// Eight bytes.
    Fixed64,
    /// A length, followed by as many bytes.
    Delimited,
    /// Four bytes.
    Fixed32,
}

impl WireValue {
    const fn of(wire: WireType) -> Option<Self> {
        match wire {
            WireType::Varint => Some(Self::Varint),
            WireType::SixtyFourBit => Some(Self::Fixed64),
            WireType::LengthDelimited => Some(Self::Delimited),
            WireType::ThirtyTwoBit => Some(Self::Fixed32),
            WireType::StartGroup | WireType::EndGroup => None,
        }
    }

    const fn as_prost(self) -> WireType {
        match self {
            Self::Varint => WireType::Varint,
            Self::Fixed64 => WireType::SixtyFourBit,
            Self::Delimited => WireType::LengthDelimited,
            Self::Fixed32 => WireType::ThirtyTwoBit,
        }
    }
}

/// Reads the number and the wire type of the next field; groups are refused.
pub fn read_key(bytes: &mut &[u8]) -> Result<(u32, WireValue), WireError> {
    let (number, wire) = decode_key(bytes).map_err(malformed)?;
    Ok((number, WireValue::of(wire).ok_or(WireError::Forbidden("groups"))?))
}

/// Reads an integer.
pub fn read_varint(bytes: &mut &[u8]) -> Result<u64, WireError> {
    decode_varint(bytes).map_err(malformed)
}

/// Reads a double.
pub fn read_double(bytes: &mut &[u8]) -> Result<f64, WireError> {
    let (number, rest) = bytes.split_first_chunk().ok_or_else(broken_off)?;
    *bytes = rest;
    Ok(f64::from_le_bytes(*number))
}

/// Reads a length, and returns the bytes after it.
pub fn read_delimited<'a>(bytes: &mut &'a [u8]) -> Result<&'a [u8], WireError> {
    let length = usize::try_from(read_varint(bytes)?).map_err(|_| broken_off())?;
    let (inner, rest) = bytes.split_at_checked(length).ok_or_else(broken_off)?;
    *bytes = rest;
    Ok(inner)
}

/// Skips a value.
pub fn skip(wire: WireValue, bytes: &mut &[u8]) -> Result<(), WireError> {
    let fixed = match wire {
        WireValue::Varint => return read_varint(bytes).map(drop),
        WireValue::Delimited => return read_delimited(bytes).map(drop),
        WireValue::Fixed64 => 8,
        WireValue::Fixed32 => 4,
    };
    *bytes = bytes.get(fixed..).ok_or_else(broken_off)?;
    Ok(())
}

/// Writes the number and the wire type of a field.
pub fn put_key(number: u32, wire: WireValue, out: &mut Vec<u8>) {
    encode_key(number, wire.as_prost(), out);
}

/// Writes a whole number.
pub fn put_varint(number: u64, out: &mut Vec<u8>) {
    encode_varint(number, out);
}

/// Writes bytes, their length before them.
pub fn put_delimited(bytes: &[u8], out: &mut Vec<u8>) {
    encode_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Writes a field of bytes.
pub fn put_field(number: u32, bytes: &[u8], out: &mut Vec<u8>) {
    put_key(number, WireValue::Delimited, out);
    put_delimited(bytes, out);
}

/// Writes a field that is a whole number.
pub fn put_number(number: u32, value: u64, out: &mut Vec<u8>) {
    put_key(number, WireValue::Varint, out);
    put_varint(value, out);
}

fn malformed(error: impl std::fmt::Display) -> WireError {
    WireError::Malformed(error.to_string())
}

fn broken_off() -> WireError {
    WireError::Malformed("the bytes end before the value does".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let mut out = Vec::new();
        put_number(1, u64::MAX, &mut out);
        put_field(536_870_911, b"text", &mut out);
        let mut bytes = &out[..];
        assert_eq!(read_key(&mut bytes), Ok((1, WireValue::Varint)));
        assert_eq!(read_varint(&mut bytes), Ok(u64::MAX));
        assert_eq!(read_key(&mut bytes), Ok((536_870_911, WireValue::Delimited)));
        assert_eq!(read_delimited(&mut bytes), Ok(&b"text"[..]));
        assert!(bytes.is_empty());
    }

    #[test]
    fn groups_and_lengths_beyond_the_end_are_refused() {
        assert_eq!(read_key(&mut &[0x0b][..]), Err(WireError::Forbidden("groups")));
        assert!(read_delimited(&mut &[0xff, 0xff, 0xff, 0xff, 0x0f, 1][..]).is_err());
        assert!(skip(WireValue::Fixed64, &mut &[0; 7][..]).is_err());
        assert!(read_double(&mut &[0; 7][..]).is_err());
    }
}
