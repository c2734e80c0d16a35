//! What a device subscribes to: topics of its app, and its own mailbox.

use mqtt_protocol_core::mqtt::result_code::SubackReasonCode;
use stentor_core::name::TopicName;

/// Where messages to the device come in.
pub(super) const DEVICE_TOPIC: &str = "messages/device";
/// Where a device is told that messages were deleted.
pub(super) const DELETED_TOPIC: &str = "messages/deleted";
/// What the topics of an app begin with.
pub(super) const TOPIC_PREFIX: &str = "topics/";
/// What the topics that lead to the app begin with.
pub(super) const UPSTREAM_PREFIX: &str = "upstream";

/// The filters that open the mailbox and are no topic of the app.
const MAILBOX_FILTERS: [&str; 7] =
    ["#", "topics/#", "topics/+", "messages/#", "messages/+", DEVICE_TOPIC, DELETED_TOPIC];

/// What one filter means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum MqttFilter {
    /// A topic of the app, to which the device is subscribed.
    Topic(TopicName),
    /// What the device gets anyway.
    Mailbox,
}

impl MqttFilter {
    /// Reads a filter; returns why it is refused.
    pub(super) fn read(filter: &str) -> Result<Self, SubackReasonCode> {
        if filter.starts_with("$share/") {
            return Err(SubackReasonCode::SharedSubscriptionsNotSupported);
        }
        if MAILBOX_FILTERS.contains(&filter) {
            return Ok(Self::Mailbox);
        }
        let Some(name) = filter.strip_prefix(TOPIC_PREFIX) else {
            return Err(SubackReasonCode::NotAuthorized);
        };
        TopicName::new(name).map(Self::Topic).map_err(|_| SubackReasonCode::TopicFilterInvalid)
    }
}

/// Filters that are topics of the app, with the QoS of each.
#[derive(Debug, Default)]
struct TopicFilters(Vec<(Box<str>, u8)>);

/// The filters of one connection, with the QoS of each. They open the mailbox: everything in it is given from the first one on,
/// because a device has one mailbox.
#[derive(Debug, Default)]
pub(super) struct MqttSubscriptions {
    /// Which filters of [`MAILBOX_FILTERS`] it has, a bit each: most connections have one of them and no other.
    mailbox: u8,
    /// Which of these have QoS 1.
    mailbox_at_least_once: u8,
    /// The others, if there are any.
    topics: Option<Box<TopicFilters>>,
    /// Whether the device returned to a session that had filters, which we do not keep.
    is_resumed: bool,
}

impl MqttSubscriptions {
    /// Starts with none, or as a session that goes on.
    pub(super) const fn new(is_resumed: bool) -> Self {
        Self { mailbox: 0, mailbox_at_least_once: 0, topics: None, is_resumed }
    }

    /// Returns whether the device wants to be given anything.
    pub(super) fn is_open(&self) -> bool {
        self.is_resumed || self.count() > 0
    }

    /// Returns whether a filter is there, or may be added where so many may be.
    pub(super) fn has_room(&self, filter: &str, max_count: usize) -> bool {
        self.count() < max_count || self.all().any(|(known, _)| known == filter)
    }

    /// Adds a filter, or changes its QoS.
    pub(super) fn add(&mut self, filter: &str, qos: u8) {
        if let Some(bit) = mailbox_bit(filter) {
            self.mailbox |= bit;
            self.mailbox_at_least_once &= !bit;
            self.mailbox_at_least_once |= if qos > 0 { bit } else { 0 };
            return;
        }
        let known =
            self.topics.iter_mut().flat_map(|topics| &mut topics.0).find(|(known, _)| &**known == filter);
        if let Some((_, known)) = known {
            *known = qos;
            return;
        }
        let TopicFilters(topics) = &mut **self.topics.get_or_insert_default();
        // Most have few, and hold no room for more.
        topics.reserve_exact(1);
        topics.push((filter.into(), qos));
    }

    /// Takes a filter away; returns whether it was there.
    pub(super) fn remove(&mut self, filter: &str) -> bool {
        let before = self.count();
        self.mailbox &= !mailbox_bit(filter).unwrap_or_default();
        if let Some(TopicFilters(topics)) = self.topics.as_deref_mut() {
            topics.retain(|(known, _)| &**known != filter);
        }
        // Whoever takes filters back knows which ones it has: nothing is assumed any more.
        self.is_resumed = false;
        self.count() < before
    }

    /// Returns the QoS with which a message comes on a topic: the best of the filters that match, else the best of all.
    pub(super) fn qos(&self, topic: &str) -> u8 {
        let matching = self.all().filter(|(filter, _)| matches(filter, topic));
        let best = matching.map(|(_, qos)| qos).max();
        // A session that goes on and has named no filter yet gets everything surely.
        best.or_else(|| self.all().map(|(_, qos)| qos).max()).unwrap_or(1)
    }

    fn count(&self) -> usize {
        self.mailbox.count_ones() as usize + self.topics.as_ref().map_or(0, |topics| topics.0.len())
    }

    /// Lists the filters, with the QoS of each.
    fn all(&self) -> impl Iterator<Item = (&str, u8)> {
        let mailbox =
            MAILBOX_FILTERS.into_iter().enumerate().filter(|(place, _)| self.mailbox >> place & 1 == 1);
        let mailbox = mailbox.map(|(place, filter)| (filter, self.mailbox_at_least_once >> place & 1));
        let topics = self.topics.iter().flat_map(|topics| &topics.0);
        mailbox.chain(topics.map(|(filter, qos)| (&**filter, *qos)))
    }
}

/// Returns the bit of a filter of [`MAILBOX_FILTERS`].
fn mailbox_bit(filter: &str) -> Option<u8> {
    MAILBOX_FILTERS.iter().position(|known| *known == filter).map(|place| 1 << place)
}

/// Returns whether a topic matches a filter (4.7 of both versions).
fn matches(filter: &str, topic: &str) -> bool {
    let mut levels = topic.split('/');
    for part in filter.split('/') {
        match (part, levels.next()) {
            ("#", _) => return true,
            ("+", Some(_)) => {}
            (part, Some(level)) if part == level => {}
            _ => return false,
        }
    }
    levels.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_a_topic_of_the_app_or_the_mailbox_or_nothing_of_ours() {
        let topic = MqttFilter::Topic(TopicName::new("news").expect("a name"));
        assert_eq!(MqttFilter::read("topics/news"), Ok(topic));
        for filter in ["#", "messages/#", "messages/device", "messages/deleted", "topics/+"] {
            assert_eq!(MqttFilter::read(filter), Ok(MqttFilter::Mailbox), "{filter}");
        }
        for filter in ["topics/", "topics/a/b", "topics/+/b", "topics/ä"] {
            assert_eq!(MqttFilter::read(filter), Err(SubackReasonCode::TopicFilterInvalid), "{filter}");
        }
        for filter in ["upstream/a", "$SYS/#", "a", ""] {
            assert_eq!(MqttFilter::read(filter), Err(SubackReasonCode::NotAuthorized), "{filter}");
        }
        let shared = SubackReasonCode::SharedSubscriptionsNotSupported;
        assert_eq!(MqttFilter::read("$share/a/topics/b"), Err(shared));
    }

    #[test]
    fn the_best_matching_filter_says_the_qos() {
        let mut subscriptions = MqttSubscriptions::new(false);
        assert!(!subscriptions.is_open());
        subscriptions.add("messages/#", 0);
        subscriptions.add("topics/a", 1);
        assert!(!subscriptions.has_room("topics/b", 2) && subscriptions.has_room("topics/a", 2));
        assert_eq!((subscriptions.qos("messages/device"), subscriptions.qos("topics/a")), (0, 1));
        assert_eq!(subscriptions.qos("topics/b"), 1, "what no filter matches comes with the best QoS of all");
        assert!(subscriptions.remove("topics/a") && !subscriptions.remove("topics/a"));
        assert_eq!(subscriptions.qos("topics/a"), 0);
    }

    #[test]
    fn a_resumed_session_is_open_until_it_takes_its_filters_back() {
        let mut subscriptions = MqttSubscriptions::new(true);
        assert!(subscriptions.is_open());
        assert_eq!(subscriptions.qos("messages/device"), 1);
        subscriptions.remove("messages/#");
        assert!(!subscriptions.is_open());
    }

    #[test]
    fn wildcards_match_as_the_standard_says() {
        let yes = [("#", "a/b"), ("a/#", "a"), ("a/#", "a/b/c"), ("a/+", "a/b"), ("+/b", "a/b")];
        let no = [("a/+", "a"), ("a/+", "a/b/c"), ("a", "a/b"), ("b/#", "a/b")];
        assert!(yes.iter().all(|(filter, topic)| matches(filter, topic)));
        assert!(!no.iter().any(|(filter, topic)| matches(filter, topic)));
    }
}
