//! What drawings are made of: scales, marks, colours that also differ in shape, and text of a known width.

mod scale;

pub(crate) use scale::Scale;
