//! The configuration of a push service's emulator: the common fields, and those of one push service.

use crate::control::{Control, Running};
use crate::device::{Devices, TokenKind};
use crate::error::EmulatorError;
use crate::frames::ConnectionLimits;
use crate::listener::{ConnectionHandler, Protocols};
use crate::observer::{Observer, ObserverConfig};
use crate::policy::{Dialect, LivePolicy, Policy};
use crate::service::{EmulatedService, EmulatorContext, Served};
use crate::tls::{self, TlsConfig};
use serde::de::{Error, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;
use std::marker::PhantomData;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// The configuration of one emulator. Every field has a default that accepts any well-formed request.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, bound(deserialize = "T: VendorOptions + Deserialize<'de>"))]
pub struct EmulatorConfig<T> {
    /// The address to listen on; port 0 takes any free port.
    pub listen: SocketAddr,
    /// The address of the control and device endpoints, in plain HTTP; none if absent.
    pub control: Option<SocketAddr>,
    /// TLS for the push service's port.
    pub tls: TlsConfig,
    /// The policy that chooses the responses.
    pub policy: Policy,
    /// The observer that counts requests.
    pub observer: ObserverConfig,
    /// Seed of all random draws, which makes a run repeatable.
    pub seed: u64,
    /// The limit announced in SETTINGS, per connection.
    pub max_concurrent_streams: u32,
    /// Ignored. Settings files from the time of two engines may contain it.
    #[serde(skip_serializing)]
    pub engine: IgnoredAny,
    /// Accepts only tokens that were issued here, as the push service does.
    pub strict_tokens: bool,
    /// Options specific to this push service. Their fields stand beside the others.
    #[serde(flatten)]
    pub vendor: T,
    /// Rejects unknown fields. It must stand last: it receives the fields that no other field has taken.
    #[serde(flatten, skip_serializing)]
    pub others: NoOtherField<T>,
}

/// Deserializes the leftover fields of a configuration. Fails if there is any.
#[derive(Clone, Copy, Debug)]
pub struct NoOtherField<T>(PhantomData<T>);

/// Options specific to one push service.
pub trait VendorOptions: Default + Serialize {
    /// The limit of streams that it announces by default.
    const MAX_CONCURRENT_STREAMS: u32;
}

impl<T: VendorOptions> Default for EmulatorConfig<T> {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            control: None,
            tls: TlsConfig::default(),
            policy: Policy::default(),
            observer: ObserverConfig::default(),
            seed: 1,
            max_concurrent_streams: T::MAX_CONCURRENT_STREAMS,
            engine: IgnoredAny,
            strict_tokens: false,
            vendor: T::default(),
            others: NoOtherField::default(),
        }
    }
}

impl<T> Default for NoOtherField<T> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<'de, T: VendorOptions> Deserialize<'de> for NoOtherField<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Self::default())
    }
}

impl<'de, T: VendorOptions> Visitor<'de> for NoOtherField<T> {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no other field")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut left: A) -> Result<Self, A::Error> {
        match left.next_key::<String>()? {
            None => Ok(self),
            Some(field) => {
                let known = known_fields::<T>().map_err(A::Error::custom)?.join("`, `");
                Err(A::Error::custom(format_args!("unknown field `{field}`, expected one of `{known}`")))
            }
        }
    }
}

/// Lists the fields that a configuration may have.
fn known_fields<T: VendorOptions>() -> serde_json::Result<Vec<String>> {
    // The fields are those that the defaults are written with: no list of them can lag behind.
    let written = serde_json::to_value(EmulatorConfig::<T>::default())?;
    Ok(written.as_object().into_iter().flatten().map(|(field, _)| field.clone()).collect())
}

/// The characteristics of one push service, for connections, policy and devices.
pub(crate) struct VendorTraits {
    pub(crate) token_kind: TokenKind,
    pub(crate) max_header_list_bytes: u32,
    pub(crate) dialect: Dialect,
}

impl<T> EmulatorConfig<T> {
    /// Builds the parts common to all emulators, without their ports.
    pub(crate) fn parts(
        &self,
        traits: VendorTraits,
    ) -> Result<(Control, Arc<EmulatorContext>, Arc<Devices>), EmulatorError> {
        let devices = Arc::new(Devices::new(traits.token_kind, self.seed));
        let limits = ConnectionLimits {
            max_concurrent_streams: self.max_concurrent_streams,
            max_header_list_bytes: traits.max_header_list_bytes,
        };
        let policy = LivePolicy::new(self.policy.clone(), self.seed, traits.dialect)?;
        let context = EmulatorContext::new(policy, Some(Observer::open(&self.observer)?), limits);
        let control = Control::new(Arc::clone(&context), Arc::clone(&devices));
        Ok((control, context, devices))
    }

    /// Builds the emulator and opens its ports.
    pub(crate) async fn start<S: EmulatedService>(
        self,
        protocols: Protocols,
        build: impl FnOnce(Self) -> Result<(Control, Arc<S>), EmulatorError>,
    ) -> Result<Running, EmulatorError> {
        self.start_handling(protocols, |config| {
            build(config).map(|(control, service)| (control, Arc::new(Served(service))))
        })
        .await
    }

    /// Builds an emulator with its own connection handler and opens its ports.
    pub(crate) async fn start_handling<S: ConnectionHandler>(
        self,
        protocols: Protocols,
        build: impl FnOnce(Self) -> Result<(Control, Arc<S>), EmulatorError>,
    ) -> Result<Running, EmulatorError> {
        let tls = tls::server(&self.tls, protocols.alpn(), self.listen.ip())?;
        let (listen, control_address) = (self.listen, self.control);
        let (control, handler) = build(self)?;
        Running::start(control, control_address, listen, tls, protocols, handler).await
    }
}
