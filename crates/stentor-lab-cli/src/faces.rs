//! The server's faces in the laboratory: the bytes of one call through each face, a caller with little overhead, and both halves of a
//! subject with the real server.

mod asked_face;
mod face_caller;
pub(crate) mod list_page;
pub(crate) mod own_data;
pub(crate) mod replay;
pub(crate) mod replaying_caller;
pub(crate) mod served;
pub(crate) mod subject;
pub(crate) mod trials;
