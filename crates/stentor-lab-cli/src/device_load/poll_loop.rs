//! The event loop of a process of devices: one thread, one epoll, no task and no timer per device.

use super::arrivals::Arrivals;
use super::connection::{ConnectionState, DeviceConnection};
use super::orders::{DeviceAnswer, DeviceOrder, DeviceSettings, DeviceStatus};
use super::transport::DeviceTransport;
use anyhow::Context;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::time::Timespec;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Pause before a device reconnects after its connection broke. Real devices spread their reconnects; these do not.
const RETRY: Duration = Duration::from_millis(50);
/// Limit of events of one wait.
const EVENTS_MAX_COUNT: usize = 1_024;
/// The bench's own connection among the events.
const CONTROL: u64 = u64::MAX;

/// Serves the bench until it closes its connection.
pub(crate) fn run(settings: &Path) -> anyhow::Result<()> {
    let settings = std::fs::read(settings).context("the settings of the devices cannot be read")?;
    DeviceLoop::start(serde_json::from_slice(&settings)?)?.run()
}

/// Returns the time in microseconds since 1970.
pub(super) fn now_us() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_micros()).unwrap_or(u64::MAX)
}

struct DeviceLoop {
    epoll: OwnedFd,
    control: BufReader<TcpStream>,
    server: SocketAddr,
    source: IpAddr,
    tls: Option<Arc<ClientConfig>>,
    devices: Vec<DeviceConnection>,
    arrivals: Arrivals,
    /// Devices that are to connect, with the earliest time.
    waiting: VecDeque<(Instant, usize)>,
    connecting: usize,
    connecting_max_count: usize,
    status: DeviceStatus,
    space: Vec<u8>,
}

impl DeviceLoop {
    fn start(settings: DeviceSettings) -> anyhow::Result<Self> {
        let control = TcpStream::connect(settings.control).context("the bench does not wait for devices")?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &control, EventData::new_u64(CONTROL), EventFlags::IN)?;
        let tls = settings.authority.as_deref().map(tls_config).transpose()?;
        let arrivals = Arrivals::of(settings.devices.len());
        Ok(Self {
            epoll,
            control: BufReader::new(control),
            server: settings.server,
            source: settings.source,
            tls,
            devices: settings.devices.into_iter().map(DeviceConnection::new).collect(),
            arrivals,
            waiting: VecDeque::new(),
            connecting: 0,
            connecting_max_count: settings.connecting_max_count,
            status: DeviceStatus::default(),
            space: Vec::new(),
        })
    }

    fn run(mut self) -> anyhow::Result<()> {
        let mut events: Vec<Event> = Vec::with_capacity(EVENTS_MAX_COUNT);
        loop {
            self.connect_next();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), self.patience().as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            for event in events.drain(..) {
                match event.data.u64() {
                    CONTROL if !self.obey()? => return Ok(()),
                    CONTROL => {}
                    place => self.go_on(place as usize),
                }
            }
        }
    }

    /// Returns the timeout of the next wait: until the next device is to connect, if the limit of connections allows another.
    fn patience(&self) -> Option<Timespec> {
        let (from, _) = self.waiting.front().filter(|_| self.connecting < self.connecting_max_count)?;
        // Rounded up: a wait shorter than a millisecond would loop without sleeping.
        let wait = from.saturating_duration_since(Instant::now()) + Duration::from_millis(1);
        Some(Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: wait.subsec_nanos().into() })
    }

    fn connect_next(&mut self) {
        while self.connecting < self.connecting_max_count {
            let Some((from, place)) = self.waiting.front().copied() else { return };
            if from > Instant::now() {
                return;
            }
            self.waiting.pop_front();
            if self.connect(place).is_err() {
                self.status.refused += 1;
                self.waiting.push_back((Instant::now() + RETRY, place));
            }
        }
    }

    fn connect(&mut self, place: usize) -> std::io::Result<()> {
        let transport = DeviceTransport::open(self.source, self.server, self.tls.as_ref())?;
        // Edge-triggered: repeated events for data already read would cost as much as reading it.
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(&self.epoll, transport.stream(), EventData::new_u64(place as u64), flags)?;
        self.devices[place].open(transport);
        self.connecting += 1;
        Ok(())
    }

    fn go_on(&mut self, place: usize) {
        let Some(device) = self.devices.get_mut(place) else { return };
        let before = device.state();
        if before == ConnectionState::Closed {
            return;
        }
        let went = device.go_on(&mut self.space, place, &mut self.arrivals);
        let is_new = before != ConnectionState::Ready;
        if went.is_err() {
            let was_ready = device.state() == ConnectionState::Ready;
            device.close();
            self.status.ready -= u64::from(!is_new);
            *(if was_ready { &mut self.status.broken } else { &mut self.status.refused }) += 1;
            self.waiting.push_back((Instant::now() + RETRY, place));
        } else if is_new && device.state() == ConnectionState::Ready {
            self.status.ready += 1;
            self.status.ready_us = now_us();
        }
        if is_new && matches!(device.state(), ConnectionState::Ready | ConnectionState::Closed) {
            self.connecting -= 1;
        }
    }

    /// Handles a request of the bench; returns false if the bench closed the connection.
    fn obey(&mut self) -> anyhow::Result<bool> {
        let mut line = String::new();
        // One line per event is enough: the bench waits for a response before its next request.
        if self.control.read_line(&mut line)? == 0 {
            return Ok(false);
        }
        let answer = match serde_json::from_str(&line)? {
            DeviceOrder::Connect => {
                let now = Instant::now();
                self.waiting.extend((0..self.devices.len()).map(|place| (now, place)));
                DeviceAnswer::Status(self.status())
            }
            DeviceOrder::Status => DeviceAnswer::Status(self.status()),
            DeviceOrder::Arrivals { first, last } => DeviceAnswer::Arrivals(self.arrivals.rows(first, last)),
        };
        let mut bytes = serde_json::to_vec(&answer)?;
        bytes.push(b'\n');
        self.control.get_mut().write_all(&bytes)?;
        Ok(true)
    }

    fn status(&self) -> DeviceStatus {
        DeviceStatus {
            distinct: self.arrivals.distinct(),
            repeats: self.arrivals.repeats(),
            unnumbered: self.arrivals.unnumbered(),
            ..self.status.clone()
        }
    }
}

fn tls_config(authority: &Path) -> anyhow::Result<Arc<ClientConfig>> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(authority)? {
        roots.add(certificate?)?;
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(Arc::new(config.with_root_certificates(roots).with_no_client_auth()))
}
