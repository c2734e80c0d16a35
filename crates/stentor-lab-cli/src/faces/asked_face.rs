//! Maps a dialect of the laboratory to a face of the server and a reader of its replies.

use super::list_page::PageReader;
use stentor_lab::runner::roster::SERVED_DIALECTS;

/// A face under study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AskedFace {
    /// Its name, with the format if it has several.
    pub(crate) name: &'static str,
    pub(crate) reader: PageReader,
}

impl AskedFace {
    /// Finds the face of a dialect; `None` if no face of the server speaks it.
    pub(crate) fn named(dialect: &str) -> Option<Self> {
        let (name, reader) = match dialect {
            "soap" => ("soap", PageReader::Dom),
            "xmlrpc" => ("xmlrpc", PageReader::XmlRpc),
            "rest+json" => ("rest", PageReader::Json),
            "rest+xml" => ("rest+xml", PageReader::Pull),
            "rest+xml-sax" => ("rest+xml", PageReader::Sax),
            "rest+xml-dom" => ("rest+xml", PageReader::Dom),
            "rest+protobuf" => ("rest+protobuf", PageReader::Message),
            "grpc" => ("grpc", PageReader::GrpcMessage),
            // The XML of the raw socket is SOAP.
            "socket+xml-sax" => ("socket+soap", PageReader::Sax),
            "socket+protobuf" => ("socket+protobuf", PageReader::FramedMessage),
            _ => return None,
        };
        SERVED_DIALECTS.contains(&dialect).then_some(Self { name, reader })
    }

    /// Returns true if it is the raw socket, which has a port of its own.
    pub(crate) fn is_socket(self) -> bool {
        self.name.starts_with("socket")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dialect_in_which_the_server_is_a_subject_has_a_face() {
        assert!(SERVED_DIALECTS.iter().all(|dialect| AskedFace::named(dialect).is_some()));
        assert_eq!(AskedFace::named("soap12"), None);
    }
}
