//! Faces: each writes the same contract in an encoding of its own, and holds no rule.

pub mod rest;
