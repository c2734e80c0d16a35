//! Every limit of the domain in one place, with its unit in its name.

/// Longest push token that is stored (FCM documents no bound; APNs allows for growth beyond 100 bytes).
pub const PUSH_TOKEN_MAX_BYTES: usize = 4_096;
/// Longest name an app gives to its own things (user ids, groups).
pub const NAME_MAX_CHARS: usize = 256;
/// Longest topic name (FCM: `[a-zA-Z0-9-_.~%]{1,900}`).
pub const TOPIC_NAME_MAX_BYTES: usize = 900;
/// Most topics one device may subscribe to (FCM: 2,000 per app instance).
pub const TOPICS_PER_DEVICE_MAX_COUNT: usize = 2_000;
/// Most groups of one user or device: every change of a device has to be applied in each of its groups.
pub const GROUPS_PER_MEMBER_MAX_COUNT: usize = 1_000;
/// Most services in the registry of one app.
pub const SERVICES_PER_APP_MAX_COUNT: usize = 1_000;
/// Most messages of one app that wait for an approval.
pub const PROPOSALS_PER_APP_MAX_COUNT: usize = 100;
/// Most API keys of one app.
pub const KEYS_PER_APP_MAX_COUNT: usize = 1_000;
/// Most service accounts of one app.
pub const ACCOUNTS_PER_APP_MAX_COUNT: usize = 100;
/// Longest name of a published service (as a label of DNS, RFC 1035).
pub const SERVICE_NAME_MAX_CHARS: usize = 63;
/// Longest kind of a published service.
pub const SERVICE_KIND_MAX_CHARS: usize = 63;
/// Longest address of a published service.
pub const SERVICE_ADDRESS_MAX_BYTES: usize = 2_048;
/// Longest description of a published service.
pub const SERVICE_DESCRIPTION_MAX_CHARS: usize = 1_024;
/// Longest time for which a published service is listed without being published again: a week.
pub const SERVICE_TTL_MAX_SECONDS: u64 = 7 * 24 * 3_600;
/// Most tags on one device.
pub const TAGS_PER_DEVICE_MAX_COUNT: usize = 32;
/// Longest tag.
pub const TAG_MAX_BYTES: usize = 64;
/// Longest locale (BCP 47 suggests 35).
pub const LOCALE_MAX_BYTES: usize = 35;
/// Longest IANA time zone name.
pub const TIME_ZONE_MAX_BYTES: usize = 64;
/// Longest name of a broadcast channel; its push service documents no length.
pub const CHANNEL_ID_MAX_CHARS: usize = 255;
/// Longest collapse key (APNs: apns-collapse-id of at most 64 bytes; its adapter sends a hash of a key that has more).
pub const COLLAPSE_KEY_MAX_CHARS: usize = 64;
/// Longest time to live: four weeks (FCM).
pub const TTL_MAX_SECONDS: u64 = 28 * 24 * 3_600;
/// Longest topic condition.
pub const CONDITION_MAX_BYTES: usize = 4_096;
/// Most topics named by one condition.
pub const CONDITION_TOPICS_MAX_COUNT: usize = 16;
/// Deepest nesting of parentheses and negations in a condition.
pub const CONDITION_DEPTH_MAX_LEVELS: usize = 16;
/// Most devices in one chunk.
pub const CHUNK_MAX_DEVICES: usize = 10_000;
/// Most devices in a message that names them one by one.
pub const TARGET_DEVICES_MAX_COUNT: usize = 1_000;
/// Largest stored message (content, target and overrides together).
pub const MESSAGE_MAX_BYTES: usize = 64 * 1_024;
/// Longest Idempotency-Key.
pub const IDEMPOTENCY_KEY_MAX_BYTES: usize = 255;
/// Most data entries of one message.
pub const DATA_ENTRIES_MAX_COUNT: usize = 256;
/// Deepest nesting of a value below a field of an override. It is well below the limit of JSON parsers (127), so that records that nest it
/// deeper can be read back.
pub const OVERRIDE_DEPTH_MAX_LEVELS: usize = 32;

/// Longest key that a device gives to one of its messages.
pub const UPSTREAM_KEY_MAX_BYTES: usize = 100;
/// Largest message of a device, as JSON.
pub const UPSTREAM_BODY_MAX_BYTES: usize = 4_096;
/// Messages of one device that may wait for its app.
pub const UPSTREAM_PER_DEVICE_MAX_COUNT: usize = 100;
/// Dead letters of one device that are kept; older ones are removed.
pub const UPSTREAM_DEAD_PER_DEVICE_MAX_COUNT: usize = 1_000;
/// Former tokens of one device that still lead to it.
pub const FORMER_TOKENS_PER_DEVICE_MAX_COUNT: usize = 3;
/// Longest name of an agent, or of a channel of one.
pub const CHANNEL_NAME_MAX_BYTES: usize = 512;
/// Channels of one agent.
pub const CHANNELS_PER_AGENT_MAX_COUNT: usize = 500;
