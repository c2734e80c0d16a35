//! The push services: the one table of their adapters, of what is kept of each and how it is written.

use crate::codes::codes;

/// Hands the registry of push services to a macro. A row is the folder of the adapter in `stentor-providers`, the kind with its
/// persisted code, its word, and what it is; what is special about it stands in its folder.
#[macro_export]
macro_rules! push_services {
    ($take:ident) => {
        $take! {
            fcm: Fcm = 1, "fcm", "Firebase Cloud Messaging.";
            apns: Apns = 2, "apns", "Apple Push Notification service.";
            null: Null = 3, "null", "Accepts everything and sends nothing; for trials and tests.";
            gateway: Gateway = 4, "gateway", "Our own connections to devices.";
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
    /// Returns whether we hear from the devices themselves what reached them: then each delivery that is accepted awaits a
    /// receipt.
    #[must_use]
    pub const fn has_receipts(self) -> bool {
        matches!(self, Self::Gateway)
    }
}
