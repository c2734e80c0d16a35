//! The server's faces as a laboratory asks them: the bytes of one call through each, a caller that spends little on them, and
//! both halves of a subject whose server is the real one.

mod asked_face;
mod face_caller;
pub(crate) mod list_page;
pub(crate) mod own_data;
pub(crate) mod replay;
pub(crate) mod replaying_caller;
pub(crate) mod served;
pub(crate) mod subject;
pub(crate) mod trials;
