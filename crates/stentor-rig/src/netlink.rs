//! Just enough of the kernel's route protocol to give an interface an address and switch it on.

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, recv, sendto, socket};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;

const NEW_LINK: u16 = 16;
const NEW_ADDRESS: u16 = 20;
const NEW_ROUTE: u16 = 24;
/// The message type of an answer; its first number is the error, 0 for none.
const ANSWER: u16 = 2;

const REQUEST: u16 = 1;
const ACKNOWLEDGE: u16 = 4;
const EXCLUSIVE: u16 = 0x200;
const CREATE: u16 = 0x400;

const INTERFACE_UP: u32 = 1;
const MTU: u16 = 4;
const NAME: u16 = 3;
const LINK_INFO: u16 = 18;
const KIND: u16 = 1;
const DATA: u16 = 2;
const PEER: u16 = 1;
const HEADER_BYTES: usize = 16;
const INET: u8 = 2;

/// A conversation with the kernel about the calling thread's network namespace.
pub(crate) struct Netlink {
    socket: OwnedFd,
}

impl Netlink {
    /// Opens it.
    pub(crate) fn open() -> io::Result<Self> {
        Ok(Self { socket: socket(AddressFamily::NETLINK, SocketType::RAW, None)? })
    }

    /// Switches an interface on; an MTU of 0 leaves it as it is.
    pub(crate) fn switch_on(&self, index: u32, mtu_bytes: u32) -> io::Result<()> {
        let mut body = interface(index, INTERFACE_UP);
        if mtu_bytes > 0 {
            attribute(&mut body, MTU, &mtu_bytes.to_ne_bytes());
        }
        self.ask(NEW_LINK, 0, &body)
    }

    /// Adds an address to an interface, in a network of 2^(32 - prefix) addresses.
    pub(crate) fn add_address(&self, index: u32, address: Ipv4Addr, prefix: u8) -> io::Result<()> {
        let mut body = vec![INET, prefix, 0, 0];
        body.extend(index.to_ne_bytes());
        // IFA_LOCAL and IFA_ADDRESS.
        for kind in [2, 1] {
            attribute(&mut body, kind, &address.octets());
        }
        self.ask(NEW_ADDRESS, CREATE | EXCLUSIVE, &body)
    }

    /// Sends everything that no other route knows through an interface.
    pub(crate) fn add_default_route(&self, index: u32) -> io::Result<()> {
        // Family, lengths of both addresses, service, main table, made by boot, scope of the link, unicast, no flags.
        let mut body = vec![INET, 0, 0, 0, 254, 3, 253, 1, 0, 0, 0, 0];
        // RTA_OIF.
        attribute(&mut body, 4, &index.to_ne_bytes());
        self.ask(NEW_ROUTE, CREATE | EXCLUSIVE, &body)
    }

    /// Creates a pair of virtual Ethernet devices of one name, one here, one in the namespace of that process or thread.
    pub(crate) fn add_pair(&self, name: &str, peer_namespace: u32) -> io::Result<()> {
        let mut name_bytes = name.as_bytes().to_vec();
        name_bytes.push(0);
        let mut peer = interface(0, 0);
        attribute(&mut peer, NAME, &name_bytes);
        // IFLA_NET_NS_PID.
        attribute(&mut peer, 19, &peer_namespace.to_ne_bytes());
        let mut data = Vec::new();
        attribute(&mut data, PEER, &peer);
        let mut info = Vec::new();
        attribute(&mut info, KIND, b"veth");
        attribute(&mut info, DATA, &data);
        let mut body = interface(0, 0);
        attribute(&mut body, NAME, &name_bytes);
        attribute(&mut body, LINK_INFO, &info);
        self.ask(NEW_LINK, CREATE | EXCLUSIVE, &body)
    }

    fn ask(&self, kind: u16, flags: u16, body: &[u8]) -> io::Result<()> {
        let mut message = Vec::with_capacity(HEADER_BYTES + body.len());
        message.extend(((HEADER_BYTES + body.len()) as u32).to_ne_bytes());
        message.extend(kind.to_ne_bytes());
        message.extend((REQUEST | ACKNOWLEDGE | flags).to_ne_bytes());
        // Sequence and sender: one question at a time needs neither.
        message.extend([0; 8]);
        message.extend(body);
        sendto(&self.socket, &message, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
        let mut answer = [0; 4096];
        let (_, length) = recv(&self.socket, &mut answer[..], RecvFlags::empty())?;
        outcome(&answer[..length.min(4096)])
    }
}

/// Reads the kernel's answer.
fn outcome(answer: &[u8]) -> io::Result<()> {
    let kind = answer.get(4..6).and_then(|bytes| bytes.try_into().ok()).map(u16::from_ne_bytes);
    let code = answer.get(HEADER_BYTES..HEADER_BYTES + 4).and_then(|bytes| bytes.try_into().ok());
    match (kind, code.map(i32::from_ne_bytes)) {
        (Some(ANSWER), Some(0)) => Ok(()),
        (Some(ANSWER), Some(code)) => Err(io::Error::from_raw_os_error(-code)),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "the kernel answers no question of ours")),
    }
}

/// `struct ifinfomsg`, with flags to set.
fn interface(index: u32, flags: u32) -> Vec<u8> {
    let mut body = vec![0; 4];
    body.extend(index.to_ne_bytes());
    body.extend(flags.to_ne_bytes());
    body.extend(flags.to_ne_bytes());
    body
}

fn attribute(message: &mut Vec<u8>, kind: u16, value: &[u8]) {
    const ALIGNED: usize = 4;
    message.extend(((ALIGNED + value.len()) as u16).to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(value);
    message.resize(message.len().next_multiple_of(ALIGNED), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attribute_is_padded_but_its_length_is_not() {
        let mut message = Vec::new();
        attribute(&mut message, 3, b"lo\0");
        assert_eq!(message, [&7_u16.to_ne_bytes()[..], &3_u16.to_ne_bytes(), b"lo\0\0"].concat());
    }

    #[test]
    fn a_refusal_of_the_kernel_is_its_error() {
        let mut answer = vec![0; 20];
        answer[4..6].copy_from_slice(&ANSWER.to_ne_bytes());
        assert!(outcome(&answer).is_ok());
        answer[16..20].copy_from_slice(&(-1_i32).to_ne_bytes());
        assert_eq!(outcome(&answer).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        assert!(outcome(&answer[..9]).is_err());
    }
}
