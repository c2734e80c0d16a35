//! The devices of the demo: synthetic, repeatable, and recognizable by the data that the API returns about them.
//!
//! The API shows only the last four characters of a token. They hold a part of the device's number, locale and time zone the rest, so that
//! a listing maps tokens to device ids without any secret.

use serde_json::Value;
use std::fmt::Write;
use stentor_emulators::web_push::{SyntheticSubscriptions, synthetic_path};

/// The most devices of one push service that stay recognizable: 256 marks times 65,536 endings of an APNs token.
const MAX_DEVICES_PER_SERVICE: u64 = MARKS * (1 << 16);
/// The most devices of the usual push services that stay recognizable.
pub const MAX_DEVICES: u64 = 2 * MAX_DEVICES_PER_SERVICE;
/// The most subscriptions of Web Push that stay recognizable.
const MAX_SUBSCRIPTIONS: u64 = 1 << 20;
/// The beginning of Huawei's tokens.
pub(crate) const HMS_PREFIX: &str = "IQAAAACy";
/// The beginning of the tokens of WNS.
pub(crate) const WNS_PREFIX: &str = "AwYAAAB";
/// The beginning of GCM's tokens.
pub(crate) const GCM_PREFIX: &str = "APA91b";

const MARKS: u64 = (LOCALES.len() * TIME_ZONES.len()) as u64;
const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const HEX: &[u8; 16] = b"0123456789abcdef";
const LOCALES: [&str; 16] = [
    "en-US", "it-IT", "de-DE", "fr-FR", "es-ES", "pt-BR", "tr-TR", "pl-PL", "nl-NL", "sv-SE", "ja-JP",
    "ko-KR", "hi-IN", "id-ID", "vi-VN", "uk-UA",
];
const TIME_ZONES: [&str; 16] = [
    "Europe/Rome",
    "Europe/Berlin",
    "Europe/Paris",
    "Europe/Madrid",
    "Europe/Istanbul",
    "Europe/Warsaw",
    "Europe/London",
    "America/New_York",
    "America/Chicago",
    "America/Los_Angeles",
    "America/Sao_Paulo",
    "Asia/Tokyo",
    "Asia/Seoul",
    "Asia/Kolkata",
    "Asia/Jakarta",
    "Australia/Sydney",
];

/// A push service of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StagedService {
    /// Firebase Cloud Messaging, with Android devices.
    Fcm,
    /// The Apple Push Notification service, with Apple devices.
    Apns,
    /// Huawei Push Kit, with Android devices.
    Hms,
    /// Google Cloud Messaging, the legacy HTTP protocol, with Android devices.
    Gcm,
    /// Web Push, with browsers.
    WebPush,
    /// The Windows Push Notification Services, with Windows devices.
    Wns,
}

impl StagedService {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Fcm, Self::Apns, Self::Hms, Self::Gcm, Self::WebPush, Self::Wns];
    /// Those of a stage whose options name none.
    pub const USUAL: [Self; 2] = [Self::Fcm, Self::Apns];

    /// The provider's word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Fcm => "fcm",
            Self::Apns => "apns",
            Self::Hms => "hms",
            Self::Gcm => "gcm",
            Self::WebPush => "web_push",
            Self::Wns => "wns",
        }
    }

    /// The platform's word.
    pub const fn platform(self) -> &'static str {
        match self {
            Self::Fcm | Self::Hms | Self::Gcm => "android",
            Self::Apns => "apple",
            Self::WebPush => "web",
            Self::Wns => "windows",
        }
    }

    /// Returns true if a device of its platform that names no provider is its device.
    const fn is_usual(self) -> bool {
        matches!(self, Self::Fcm | Self::Apns)
    }

    /// The beginning of each of its tokens.
    const fn prefix(self) -> &'static str {
        match self {
            Self::Fcm | Self::Apns | Self::WebPush => "",
            Self::Hms => HMS_PREFIX,
            Self::Gcm => GCM_PREFIX,
            Self::Wns => WNS_PREFIX,
        }
    }

    /// The letters of its tokens.
    const fn alphabet(self) -> &'static [u8] {
        match self {
            Self::Apns => HEX,
            Self::Fcm | Self::Hms | Self::Gcm | Self::WebPush | Self::Wns => BASE64,
        }
    }
}

/// The push services of a stage. Its devices are dealt out to them in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StagedServices {
    services: [StagedService; StagedService::ALL.len()],
    count: usize,
}

/// The addresses that devices of some push services bear in their tokens.
#[derive(Clone, Debug)]
pub struct TokenOrigins {
    pub(crate) web_push: Option<SyntheticSubscriptions>,
    pub(crate) wns: String,
}

impl StagedServices {
    /// FCM and APNs.
    pub const USUAL: Self = Self { services: StagedService::ALL, count: 2 };

    /// Names some of them, each once and at least one; otherwise returns `None`.
    pub fn new(named: &[StagedService]) -> Option<Self> {
        let is_repeated = |(place, service)| named[..place].contains(service);
        if named.is_empty() || named.iter().enumerate().any(is_repeated) {
            return None;
        }
        let mut services = StagedService::ALL;
        services[..named.len()].copy_from_slice(named);
        Some(Self { services, count: named.len() })
    }

    /// Returns them in their order.
    pub fn as_slice(&self) -> &[StagedService] {
        &self.services[..self.count]
    }

    /// Returns the most devices that stay recognizable.
    pub fn max_devices(&self) -> u64 {
        let has_subscriptions = self.as_slice().contains(&StagedService::WebPush);
        self.count as u64 * if has_subscriptions { MAX_SUBSCRIPTIONS } else { MAX_DEVICES_PER_SERVICE }
    }

    fn place(&self, service: StagedService) -> Option<u64> {
        self.as_slice().iter().position(|one| *one == service).map(|place| place as u64)
    }
}

/// One device: its push service and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PopulationMember {
    /// Its push service.
    pub service: StagedService,
    /// Its number there.
    pub number: u64,
}

/// The devices that are imported into an app: invented, repeatable.
#[derive(Clone, Copy, Debug)]
pub struct DevicePopulation {
    devices: u64,
    seed: u64,
    services: StagedServices,
}

impl DevicePopulation {
    /// Invents a population of the usual push services.
    pub const fn new(devices: u64, seed: u64) -> Self {
        Self { devices, seed, services: StagedServices::USUAL }
    }

    /// Deals the devices out to other push services.
    #[must_use]
    pub const fn through(self, services: StagedServices) -> Self {
        Self { services, ..self }
    }

    /// Returns the number of devices.
    pub const fn devices(self) -> u64 {
        self.devices
    }

    /// Returns the push services.
    pub const fn services(self) -> StagedServices {
        self.services
    }

    /// Returns the number of devices of a push service.
    pub fn devices_of(self, service: StagedService) -> u64 {
        let count = self.services.count as u64;
        self.services.place(service).map_or(0, |place| (self.devices + count - 1 - place) / count)
    }

    /// The device at a place of the import.
    pub fn member(self, place: u64) -> PopulationMember {
        let services = self.services.as_slice();
        let count = services.len() as u64;
        PopulationMember { service: services[(place % count) as usize], number: place / count }
    }

    /// Every device.
    pub fn members(self) -> impl Iterator<Item = PopulationMember> {
        (0..self.devices).map(move |place| self.member(place))
    }

    /// The token by which the emulator of its push service knows a device: its push token, or the part of it that is no address.
    pub fn token(self, member: PopulationMember) -> String {
        let ending = member.number / MARKS;
        let PopulationMember { service, number } = member;
        let text = |stream, length| Dice::new(self.seed, stream, number).text(service.alphabet(), length);
        let mut token = match service {
            StagedService::Fcm => {
                let mut dice = Dice::new(self.seed, 1, number);
                let mut token = dice.text(BASE64, 22);
                token.push_str(":APA91b");
                token.push_str(&dice.text(BASE64, 130));
                token
            }
            StagedService::Apns => text(2, 60),
            StagedService::Hms => format!("{}{}", service.prefix(), text(3, 118)),
            StagedService::Gcm => format!("{}{}", service.prefix(), text(4, 130)),
            // Its number is in the last letters of another part of the push token.
            StagedService::WebPush => return synthetic_path(self.seed, number),
            StagedService::Wns => format!("{}{}", service.prefix(), text(5, 60)),
        };
        spell(&mut token, service.alphabet(), ending);
        token
    }

    /// The push token of a device, with the address of its push service if that is a part of it.
    pub fn push_token(self, member: PopulationMember, origins: Option<&TokenOrigins>) -> String {
        match (member.service, origins) {
            (StagedService::WebPush, Some(TokenOrigins { web_push: Some(subscriptions), .. })) => {
                subscriptions.token(member.number)
            }
            (StagedService::Wns, Some(TokenOrigins { wns, .. })) => {
                format!("{wns}/?token={}", self.token(member))
            }
            _ => self.token(member),
        }
    }

    /// Writes the line with which a device is imported, if its push token bears no address.
    pub fn write_line(self, member: PopulationMember, lines: &mut String) {
        self.write_line_at(member, None, lines);
    }

    /// Writes the line with which a device is imported.
    pub fn write_line_at(self, member: PopulationMember, origins: Option<&TokenOrigins>, lines: &mut String) {
        let (locale, time_zone) = marks(member.number);
        let (platform, token) = (member.service.platform(), self.push_token(member, origins));
        let provider = if member.service.is_usual() {
            String::new()
        } else {
            format!(r#""provider":"{}","#, member.service.word())
        };
        // Writing to a string cannot fail.
        let _ = writeln!(
            lines,
            r#"{{"platform":"{platform}",{provider}"token":"{token}","locale":"{locale}","time_zone":"{time_zone}"}}"#
        );
    }

    /// Recognizes a device in a listing of the API.
    pub fn recognize(self, device: &Value) -> Option<PopulationMember> {
        let word = device["provider"].as_str()?;
        let service = self.services.as_slice().iter().copied().find(|service| service.word() == word)?;
        let ending = read(service.alphabet(), device["token_hint"].as_str()?)?;
        let place = |list: &[&str], field: &str| {
            let text = device[field].as_str()?;
            list.iter().position(|one| *one == text).map(|place| place as u64)
        };
        let mark = place(&LOCALES, "locale")? + place(&TIME_ZONES, "time_zone")? * LOCALES.len() as u64;
        let number = match service {
            // The hint has 20 bits of the number, and four that are zero.
            StagedService::WebPush => ending >> 4,
            _ => ending * MARKS + mark,
        };
        if number % MARKS != mark {
            return None;
        }
        (number < self.devices_of(service)).then_some(PopulationMember { service, number })
    }
}

fn marks(number: u64) -> (&'static str, &'static str) {
    let mark = (number % MARKS) as usize;
    (LOCALES[mark % LOCALES.len()], TIME_ZONES[mark / LOCALES.len()])
}

/// Appends a number as four letters.
fn spell(token: &mut String, alphabet: &[u8], number: u64) {
    let base = alphabet.len() as u64;
    for power in (0..4).rev() {
        token.push(char::from(alphabet[(number / base.pow(power) % base) as usize]));
    }
}

/// Reads the number back from the last four letters.
fn read(alphabet: &[u8], hint: &str) -> Option<u64> {
    let ending = hint.as_bytes().last_chunk::<4>()?;
    ending.iter().try_fold(0, |number, letter| {
        let place = alphabet.iter().position(|one| one == letter)?;
        Some(number * alphabet.len() as u64 + place as u64)
    })
}

/// Repeatable chance (SplitMix64).
struct Dice(u64);

impl Dice {
    fn new(seed: u64, stream: u64, number: u64) -> Self {
        let mut dice = Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (stream << 56) ^ number);
        dice.next();
        dice
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Draws letters; the alphabet's length is a power of two of at most 64.
    fn text(&mut self, alphabet: &[u8], length: usize) -> String {
        let mut text = String::with_capacity(length + 8);
        while text.len() < length {
            let mut bits = self.next();
            for _ in 0..8.min(length - text.len()) {
                text.push(char::from(alphabet[(bits % alphabet.len() as u64) as usize]));
                bits >>= 8;
            }
        }
        text
    }
}

#[cfg(test)]
mod tests;
