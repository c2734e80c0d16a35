//! The push services by name: the one table of what is kept of each and how it is written.

use crate::codes::codes;

codes! {
    /// Adapter that reaches a device. What is special about one stands in its folder of `stentor-providers`.
    ProviderKind {
        /// Firebase Cloud Messaging.
        Fcm = 1, "fcm";
        /// Apple Push Notification service.
        Apns = 2, "apns";
        /// Accepts everything and sends nothing; for trials and tests.
        Null = 3, "null";
        /// Our own connections to devices.
        Gateway = 4, "gateway";
    }
}

impl ProviderKind {
    /// Returns whether we hear from the devices themselves what reached them: then each delivery that is accepted awaits a
    /// receipt.
    #[must_use]
    pub const fn has_receipts(self) -> bool {
        matches!(self, Self::Gateway)
    }
}
