//! The push services: the table of their adapters, with stored codes and names.

use crate::codes::codes;

/// Passes the table of push services to a macro. A row has the adapter's folder in `stentor-providers`, the kind with its persisted code,
/// its name and its description. Everything specific to the push service is in that folder.
#[macro_export]
macro_rules! push_services {
    ($take:ident) => {
        $take! {
            fcm: Fcm = 1, "fcm", "Firebase Cloud Messaging.";
            apns: Apns = 2, "apns", "Apple Push Notification service.";
            null: Null = 3, "null", "Accepts everything and sends nothing; for trials and tests.";
            gateway: Gateway = 4, "gateway", "Our own connections to devices.";
            web_push: WebPush = 5, "web_push", "Web Push, to browsers and to receivers of UnifiedPush.";
            wns: Wns = 6, "wns", "Windows Push Notification Services.";
            hms: Hms = 7, "hms", "Huawei Push Kit.";
            gcm: Gcm = 8, "gcm", "Google Cloud Messaging, the legacy HTTP protocol.";
            live_activity: LiveActivity = 9, "live_activity", "Apple's Live Activities, each by its own token.";
            live_activity_start: LiveActivityStart = 10, "live_activity_start", "Starts of Apple's Live Activities.";
            live_activity_channel: LiveActivityChannel = 11, "live_activity_channel", "Channels of Apple's Live Activities.";
        }
    };
}

macro_rules! kinds {
    ($($folder:ident: $kind:ident = $code:literal, $word:literal, $about:literal;)*) => {
        codes! {
            /// Adapter that reaches a device.
            ProviderKind { $(#[doc = $about] $kind = $code, $word;)* }
        }
    };
}
push_services!(kinds);

impl ProviderKind {
    /// Returns true if devices confirm deliveries to us: then each accepted delivery awaits a receipt.
    #[must_use]
    pub const fn has_receipts(self) -> bool {
        matches!(self, Self::Gateway)
    }
}
