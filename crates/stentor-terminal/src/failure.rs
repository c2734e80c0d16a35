//! The exit codes; failures with a code of their own come from the stage.

pub use stentor_stage::failure::{CommandFailure, Exit, judge};

/// The meaning of the exit codes, as printed by `--help`.
pub const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  not done: refused, failed, or the demo's proof did not hold
  2  the command line or a file given to it cannot be understood
  3  the server cannot be reached
  4  the key is missing, wrong, or not allowed to do this
  5  there is no such thing
  6  this machine cannot do it: rights or devices are missing
  130  interrupted";
