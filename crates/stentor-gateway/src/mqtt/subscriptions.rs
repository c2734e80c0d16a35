//! Subscriptions of a device: topics of its app, and its own mailbox.

use mqtt_protocol_core::mqtt::result_code::SubackReasonCode;
use stentor_core::name::TopicName;

/// The topic of messages to the device.
pub(super) const DEVICE_TOPIC: &str = "messages/device";
/// The topic of notices that messages were deleted.
pub(super) const DELETED_TOPIC: &str = "messages/deleted";
/// Prefix of the topics of an app.
pub(super) const TOPIC_PREFIX: &str = "topics/";
/// First level of the topics that lead to the app.
pub(super) const UPSTREAM_PREFIX: &str = "upstream";

/// The filters that open the mailbox and are not topics of the app.
const MAILBOX_FILTERS: [&str; 7] =
    ["#", "topics/#", "topics/+", "messages/#", "messages/+", DEVICE_TOPIC, DELETED_TOPIC];

/// The meaning of a filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum MqttFilter {
    /// A topic of the app, to which the device is subscribed.
    Topic(TopicName),
    /// The device's mailbox, which it receives in any case.
    Mailbox,
}

impl MqttFilter {
    /// Parses a filter. The error is the reason code of its rejection.
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

/// A filter that is a topic of the app.
#[derive(Debug)]
struct TopicFilter {
    name: Box<str>,
    given: GivenAs,
}

/// Filters that are topics of the app.
#[derive(Debug, Default)]
struct TopicFilters(Vec<TopicFilter>);

/// The delivery options of messages that match a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct GivenAs {
    /// True for QoS 1, false for QoS 0.
    pub(super) is_at_least_once: bool,
    /// True if the retain flag is passed on as published.
    pub(super) is_as_published: bool,
}

/// The filters of one connection. The first one opens the mailbox, and everything in it is delivered, because a device has one mailbox.
#[derive(Debug, Default)]
pub(super) struct MqttSubscriptions {
    /// A bit for each subscribed filter of [`MAILBOX_FILTERS`]; most connections have one of them and no other filter.
    mailbox: u8,
    /// The bits of those with QoS 1.
    mailbox_at_least_once: u8,
    /// The bits of those that keep the retain flag.
    mailbox_as_published: u8,
    /// The other filters, if there are any.
    topics: Option<Box<TopicFilters>>,
    /// True while the device relies on the filters of a resumed session, which are not stored.
    is_resumed: bool,
    /// True if the session was resumed, regardless of later requests.
    was_resumed: bool,
}

impl MqttSubscriptions {
    /// Starts without filters, or with those of a resumed session.
    pub(super) const fn new(is_resumed: bool) -> Self {
        Self {
            mailbox: 0,
            mailbox_at_least_once: 0,
            mailbox_as_published: 0,
            topics: None,
            is_resumed,
            was_resumed: is_resumed,
        }
    }

    /// Returns true if the device wants deliveries.
    pub(super) fn is_open(&self) -> bool {
        self.is_resumed || self.count() > 0
    }

    /// Returns true if a filter exists, or may be added within the limit.
    pub(super) fn has_room(&self, filter: &str, max_count: usize) -> bool {
        self.count() < max_count || self.has(filter)
    }

    /// Returns true if a filter already belongs to the session. The filters of a resumed session are unknown. A mailbox filter counts as
    /// existing until the device removes a filter, a topic if the device is subscribed to it.
    pub(super) fn was_there(&self, filter: &str, is_subscribed: bool) -> bool {
        let is_taken_over =
            if mailbox_bit(filter).is_some() { self.is_resumed } else { self.was_resumed && is_subscribed };
        self.has(filter) || is_taken_over
    }

    fn has(&self, filter: &str) -> bool {
        self.all().any(|(known, _)| known == filter)
    }

    /// Adds a filter, or changes its options.
    pub(super) fn add(&mut self, filter: &str, given: GivenAs) {
        if let Some(bit) = mailbox_bit(filter) {
            self.mailbox |= bit;
            let set = |bits: u8, is_set: bool| if is_set { bits | bit } else { bits & !bit };
            self.mailbox_at_least_once = set(self.mailbox_at_least_once, given.is_at_least_once);
            self.mailbox_as_published = set(self.mailbox_as_published, given.is_as_published);
            return;
        }
        let known = self.topics.iter_mut().flat_map(|topics| &mut topics.0);
        if let Some(known) = known.into_iter().find(|known| &*known.name == filter) {
            known.given = given;
            return;
        }
        let TopicFilters(topics) = &mut **self.topics.get_or_insert_default();
        // Exact, because most connections have few.
        topics.reserve_exact(1);
        topics.push(TopicFilter { name: filter.into(), given });
    }

    /// Removes a filter; returns true if it existed.
    pub(super) fn remove(&mut self, filter: &str) -> bool {
        let before = self.count();
        self.mailbox &= !mailbox_bit(filter).unwrap_or_default();
        if let Some(TopicFilters(topics)) = self.topics.as_deref_mut() {
            topics.retain(|known| &*known.name != filter);
        }
        // A client that removes filters knows its filters: no unknown ones are assumed any more.
        self.is_resumed = false;
        self.count() < before
    }

    /// Returns the options for a message on a topic: the best of the matching filters, otherwise the best QoS of all filters.
    pub(super) fn given_as(&self, topic: &str) -> GivenAs {
        let best = |one: GivenAs, other: GivenAs| GivenAs {
            is_at_least_once: one.is_at_least_once || other.is_at_least_once,
            is_as_published: one.is_as_published || other.is_as_published,
        };
        let matching = self.all().filter(|(filter, _)| matches(filter, topic)).map(|(_, given)| given);
        matching.reduce(best).unwrap_or_else(|| {
            let any = self.all().map(|(_, given)| given.is_at_least_once).reduce(|one, other| one || other);
            // A resumed session without any named filter gets everything with QoS 1.
            GivenAs { is_at_least_once: any.unwrap_or(true), is_as_published: false }
        })
    }

    fn count(&self) -> usize {
        self.mailbox.count_ones() as usize + self.topics.as_ref().map_or(0, |topics| topics.0.len())
    }

    /// Lists the filters.
    fn all(&self) -> impl Iterator<Item = (&str, GivenAs)> {
        let is_set = |bits: u8, place: usize| bits >> place & 1 == 1;
        let mailbox = MAILBOX_FILTERS.into_iter().enumerate();
        let mailbox = mailbox.filter(move |(place, _)| is_set(self.mailbox, *place));
        let mailbox = mailbox.map(move |(place, filter)| {
            let is_at_least_once = is_set(self.mailbox_at_least_once, place);
            let is_as_published = is_set(self.mailbox_as_published, place);
            (filter, GivenAs { is_at_least_once, is_as_published })
        });
        let topics = self.topics.iter().flat_map(|topics| &topics.0);
        mailbox.chain(topics.map(|known| (&*known.name, known.given)))
    }
}

/// Returns true if a filter matches all topics of the app.
pub(super) fn is_of_all_topics(filter: &str) -> bool {
    matches!(filter, "#" | "topics/#" | "topics/+")
}

/// Returns the bit of a filter of [`MAILBOX_FILTERS`].
fn mailbox_bit(filter: &str) -> Option<u8> {
    MAILBOX_FILTERS.iter().position(|known| *known == filter).map(|place| 1 << place)
}

/// Returns true if a topic matches a filter (4.7 of both versions).
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

    fn qos(qos: u8) -> GivenAs {
        GivenAs { is_at_least_once: qos > 0, is_as_published: false }
    }

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
        subscriptions.add("messages/#", qos(0));
        subscriptions.add("topics/a", qos(1));
        assert!(!subscriptions.has_room("topics/b", 2) && subscriptions.has_room("topics/a", 2));
        let of = |subscriptions: &MqttSubscriptions, topic| subscriptions.given_as(topic);
        assert_eq!((of(&subscriptions, "messages/device"), of(&subscriptions, "topics/a")), (qos(0), qos(1)));
        let best = "what no filter matches comes with the best QoS of all";
        assert_eq!(of(&subscriptions, "topics/b"), qos(1), "{best}");
        assert!(subscriptions.remove("topics/a") && !subscriptions.remove("topics/a"));
        assert_eq!(of(&subscriptions, "topics/a"), qos(0));
    }

    #[test]
    fn the_retain_flag_comes_where_a_matching_filter_wants_it() {
        let mut subscriptions = MqttSubscriptions::new(false);
        let as_published = GivenAs { is_at_least_once: true, is_as_published: true };
        for filter in ["topics/a", "#"] {
            subscriptions.add(filter, as_published);
            assert_eq!(subscriptions.given_as("topics/a"), as_published, "{filter}");
            assert_eq!(subscriptions.given_as("topics/b").is_as_published, filter == "#");
            subscriptions.add(filter, qos(1));
            assert_eq!(subscriptions.given_as("topics/a"), qos(1), "the later one has replaced it");
        }
    }

    #[test]
    fn filters_of_a_session_that_goes_on_were_there_as_far_as_is_known() {
        let mut subscriptions = MqttSubscriptions::new(false);
        assert!(!subscriptions.was_there("topics/a", true) && !subscriptions.was_there("#", false));
        subscriptions.add("#", qos(0));
        assert!(subscriptions.was_there("#", false));
        let mut resumed = MqttSubscriptions::new(true);
        assert!(resumed.was_there("topics/a", true) && !resumed.was_there("topics/a", false));
        assert!(resumed.was_there("#", false));
        resumed.remove("topics/b");
        assert!(resumed.was_there("topics/a", true) && !resumed.was_there("#", false));
    }

    #[test]
    fn a_resumed_session_is_open_until_it_takes_its_filters_back() {
        let mut subscriptions = MqttSubscriptions::new(true);
        assert!(subscriptions.is_open());
        assert_eq!(subscriptions.given_as("messages/device"), qos(1));
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
