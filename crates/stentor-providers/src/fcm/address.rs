//! The two kinds of addresses that a device has at FCM: an installation id, and the older registration token.
//!
//! Sources: FCM v1 `projects.messages` reference (a message names one of `fid` and `token`); Firebase documentation, "Manage Firebase
//! installations"; the form of an installation id is that which Firebase's SDKs check when they make one.
//!
//! Design decision: an address is stored as a text, and its form shows its kind. A registration token never has the form of an installation
//! id, because it holds a colon and is several times as long. A mark beside the text would be another fact that every way in would have to
//! state, and that could be wrong.

use stentor_core::device::TokenForm;

/// The form of an installation id: 22 letters of base64url, of which the first four bits are 0111.
pub(crate) const INSTALLATION_ID: TokenForm = TokenForm { first: "cdef", rest_count: 21 };

/// Returns true if an address is an installation id; otherwise it is a registration token.
#[must_use]
pub fn is_installation_id(address: &str) -> bool {
    INSTALLATION_ID.fits(address)
}
