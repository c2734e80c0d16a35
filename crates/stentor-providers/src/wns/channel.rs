//! Channel URIs of WNS as push tokens.

use reqwest::Url;

/// The domain of every channel. Access tokens go to no other one, since whoever holds one may send (Microsoft, "WNS overview").
const DOMAIN: &str = "notify.windows.com";
/// Hosts of this machine, for emulators.
const LOCAL_HOSTS: &[&str] = &["localhost", "127.0.0.1", "[::1]"];

/// Returns the canonical spelling of a channel URI; `None` if it is none.
pub(super) fn canonical(text: &str) -> Option<String> {
    let url = Url::parse(text).ok()?;
    let host = url.host_str()?;
    let is_vendors =
        host.strip_suffix(DOMAIN).is_some_and(|before| before.is_empty() || before.ends_with('.'));
    let is_safe = match url.scheme() {
        "https" => is_vendors || LOCAL_HOSTS.contains(&host),
        "http" => LOCAL_HOSTS.contains(&host),
        _ => false,
    };
    let is_plain = url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
    (is_safe && is_plain).then(|| url.into())
}

/// Splits a channel URI in its canonical spelling into its origin and the rest.
pub(super) fn split(channel: &str) -> Option<(&str, &str)> {
    let scheme = channel.find("://")? + "://".len();
    let path = scheme + channel[scheme..].find('/')?;
    Some(channel.split_at(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_channels_of_the_vendor_and_of_this_machine_are_tokens() {
        for (text, spelled) in [
            (
                "https://db5p.notify.windows.com/?token=AgYAAAB%2bx",
                "https://db5p.notify.windows.com/?token=AgYAAAB%2bx",
            ),
            (
                "https://WNS2-db5p.Notify.Windows.com:443/?token=a",
                "https://wns2-db5p.notify.windows.com/?token=a",
            ),
            ("http://127.0.0.1:8080?token=a", "http://127.0.0.1:8080/?token=a"),
        ] {
            assert_eq!(canonical(text).as_deref(), Some(spelled));
        }
        for text in [
            "",
            "token",
            "http://db5p.notify.windows.com/?token=a",
            "https://notify.windows.com.evil.example/?token=a",
            "https://evilnotify.windows.com/?token=a",
            "https://me:hush@db5p.notify.windows.com/?token=a",
            "https://db5p.notify.windows.com/?token=a#b",
        ] {
            assert_eq!(canonical(text), None, "{text}");
        }
    }

    #[test]
    fn a_channel_leads_to_its_host_and_its_path() {
        let channel = "https://db5p.notify.windows.com/?token=a";
        assert_eq!(split(channel), Some(("https://db5p.notify.windows.com", "/?token=a")));
    }
}
