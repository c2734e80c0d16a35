//! Documents of other faces in frames. Each face responds as over HTTP.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::FrameEncoding;
use crate::contract::{Problem, ServiceResult};
use crate::face::record::RequestContext;
use crate::face::{Api, soap, xmlrpc};

/// Future of the response to a document.
type DocumentAnswer<'a> = BoxFuture<'a, ServiceResult<Vec<u8>>>;

/// A face with complete documents as requests and replies.
#[derive(Clone, Copy)]
pub(super) struct DocumentFace {
    /// Responds to a document with a document.
    pub(super) answer: for<'a> fn(&'a Api, &'a RequestContext, &'a [u8]) -> DocumentAnswer<'a>,
    /// Writes a refusal as a document.
    pub(super) refuse: fn(&Problem) -> Vec<u8>,
}

const XMLRPC: DocumentFace = DocumentFace {
    answer: |api, context, document| xmlrpc::answer_document(api, context, document).boxed(),
    refuse: xmlrpc::fault_document,
};

const SOAP: DocumentFace = DocumentFace {
    answer: |api, context, document| soap::answer_document(api, context, document).boxed(),
    refuse: soap::fault_document,
};

impl FrameEncoding {
    /// Returns the face of the documents; `None` if requests have numbers.
    pub(super) const fn documents(self) -> Option<DocumentFace> {
        match self {
            Self::Json | Self::Protobuf => None,
            Self::Xmlrpc => Some(XMLRPC),
            Self::Soap => Some(SOAP),
        }
    }
}
