//! The devices of the demo: synthetic, repeatable, and recognizable by the data that the API returns about them.
//!
//! The API shows only the last four characters of a token. They hold a part of the device's number, locale and time zone the rest, so that
//! a listing maps tokens to device ids without any secret.

use serde_json::Value;
use std::fmt::Write;

/// The most devices that stay recognizable: 256 marks times 65,536 endings of an APNs token, for each half.
pub const MAX_DEVICES: u64 = 2 * MARKS * (1 << 16);

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

/// One half of the population.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Half {
    /// Android devices, reached through FCM.
    Fcm,
    /// Apple devices, reached through APNs.
    Apns,
}

impl Half {
    /// Both halves.
    pub const BOTH: [Self; 2] = [Self::Fcm, Self::Apns];

    /// The provider's word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Fcm => "fcm",
            Self::Apns => "apns",
        }
    }

    /// The platform's word.
    pub const fn platform(self) -> &'static str {
        match self {
            Self::Fcm => "android",
            Self::Apns => "apple",
        }
    }
}

/// One device: its half and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PopulationMember {
    /// Its half.
    pub half: Half,
    /// Its number there.
    pub number: u64,
}

/// The devices that are imported into an app: invented, repeatable.
#[derive(Clone, Copy, Debug)]
pub struct DevicePopulation {
    devices: u64,
    seed: u64,
}

impl DevicePopulation {
    /// Invents a population.
    pub const fn new(devices: u64, seed: u64) -> Self {
        Self { devices, seed }
    }

    /// Returns the number of devices.
    pub const fn devices(self) -> u64 {
        self.devices
    }

    /// Returns the number of devices of a half.
    pub const fn devices_of(self, half: Half) -> u64 {
        match half {
            Half::Fcm => self.devices.div_ceil(2),
            Half::Apns => self.devices / 2,
        }
    }

    /// The device at a place of the import.
    pub const fn member(self, place: u64) -> PopulationMember {
        let half = if place.is_multiple_of(2) { Half::Fcm } else { Half::Apns };
        PopulationMember { half, number: place / 2 }
    }

    /// Every device.
    pub fn members(self) -> impl Iterator<Item = PopulationMember> {
        (0..self.devices).map(move |place| self.member(place))
    }

    /// The push token of a device.
    pub fn token(self, member: PopulationMember) -> String {
        let ending = member.number / MARKS;
        match member.half {
            Half::Fcm => {
                let mut dice = Dice::new(self.seed, 1, member.number);
                let mut token = dice.text(BASE64, 22);
                token.push_str(":APA91b");
                token.push_str(&dice.text(BASE64, 130));
                spell(&mut token, BASE64, ending);
                token
            }
            Half::Apns => {
                let mut token = Dice::new(self.seed, 2, member.number).text(HEX, 60);
                spell(&mut token, HEX, ending);
                token
            }
        }
    }

    /// Writes the line with which a device is imported.
    pub fn write_line(self, member: PopulationMember, lines: &mut String) {
        let (locale, time_zone) = marks(member.number);
        let (platform, token) = (member.half.platform(), self.token(member));
        // Writing to a string cannot fail.
        let _ = writeln!(
            lines,
            r#"{{"platform":"{platform}","token":"{token}","locale":"{locale}","time_zone":"{time_zone}"}}"#
        );
    }

    /// Recognizes a device in a listing of the API.
    pub fn recognize(self, device: &Value) -> Option<PopulationMember> {
        let (half, alphabet) = match device["provider"].as_str()? {
            "fcm" => (Half::Fcm, &BASE64[..]),
            "apns" => (Half::Apns, &HEX[..]),
            _ => return None,
        };
        let ending = read(alphabet, device["token_hint"].as_str()?)?;
        let place = |list: &[&str], field: &str| {
            let text = device[field].as_str()?;
            list.iter().position(|one| *one == text).map(|place| place as u64)
        };
        let mark = place(&LOCALES, "locale")? + place(&TIME_ZONES, "time_zone")? * LOCALES.len() as u64;
        let number = ending * MARKS + mark;
        (number < self.devices_of(half)).then_some(PopulationMember { half, number })
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
