//! An authority for one room, and a certificate that has the names which clients have built in.

use std::path::PathBuf;

use rcgen::KeyUsagePurpose;
use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};

use crate::room::{NAMES, Room};

/// Files that a server and its clients need for TLS.
pub(crate) struct RoomAuthority {
    pub(crate) authority: PathBuf,
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

impl RoomAuthority {
    /// Creates the authority and a server's certificate, and writes them into the room.
    pub(crate) fn make(room: &Room) -> anyhow::Result<Self> {
        let (above, below) = (KeyPair::generate()?, KeyPair::generate()?);
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        authority.distinguished_name.push(DnType::CommonName, "an authority of one room");
        let authority_pem = authority.self_signed(&above)?.pem();
        let mut server = CertificateParams::new(NAMES.iter().map(ToString::to_string).collect::<Vec<_>>())?;
        server.distinguished_name.push(DnType::CommonName, "a server under other names");
        server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        server.use_authority_key_identifier_extension = true;
        let certificate = server.signed_by(&below, &Issuer::from_params(&authority, &above))?;
        Ok(Self {
            authority: room.file("room-authority.pem", &authority_pem)?,
            certificate: room.file("server.pem", &certificate.pem())?,
            key: room.file("server-key.pem", &below.serialize_pem())?,
        })
    }
}
