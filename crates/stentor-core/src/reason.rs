//! Reasons for the state of a delivery.

use crate::codes::codes;

codes! {
    /// The reason for the state of a delivery; stored as one byte in the ledger, so codes are never reused.
    Reason {
        /// No particular reason.
        None = 0, "none";
        /// The push service no longer knows the token.
        Unregistered = 1, "unregistered";
        /// The token was never valid there.
        InvalidToken = 2, "invalid_token";
        /// The token belongs to another sender, topic or environment.
        SenderMismatch = 3, "sender_mismatch";
        /// The device was removed or retired before its turn.
        DeviceGone = 4, "device_gone";
        /// The push service refuses this content.
        InvalidPayload = 5, "invalid_payload";
        /// The content is larger than the push service takes.
        PayloadTooLarge = 6, "payload_too_large";
        /// The push service refuses our credential.
        CredentialRefused = 7, "credential_refused";
        /// The push service requests a lower rate.
        Throttled = 8, "throttled";
        /// The push service, or the network path to it, is down.
        Unavailable = 9, "unavailable";
        /// The request was written and never answered.
        Unanswered = 10, "unanswered";
        /// Its time to live passed before it was accepted.
        TtlPassed = 11, "ttl_passed";
        /// A newer message with the same collapse key took its place.
        ReplacedByNewer = 12, "replaced_by_newer";
        /// Its campaign was canceled.
        CampaignCanceled = 13, "campaign_canceled";
        /// Its campaign was stopped at this provider because the push service refuses the payload for every device.
        PayloadRefused = 14, "payload_refused";
        /// Tried as often as the policy allows.
        AttemptsExhausted = 15, "attempts_exhausted";
        /// The token has expired.
        TokenExpired = 16, "token_expired";
        /// Too many messages to this one device.
        DeviceThrottled = 17, "device_throttled";
        /// The app has no credential for the provider.
        CredentialMissing = 18, "credential_missing";
        /// The push service's own key to a third party is wrong.
        ThirdPartyAuth = 19, "third_party_auth";
        /// The app was deleted.
        AppGone = 20, "app_gone";
        /// The push service sent a response that its documentation does not define.
        UnknownAnswer = 21, "unknown_answer";
        /// Its stored data can no longer be read or written.
        Damaged = 22, "damaged";
        /// All addresses of the push service's endpoint are refused by the outbound policy.
        AddressRefused = 23, "address_refused";
        /// The device had too many pending messages; it was notified that messages were deleted.
        TooManyPending = 24, "too_many_pending";
        /// The push service took it and dropped it: the user has switched notifications off, or the device is away and it may not wait.
        Dropped = 25, "dropped";
    }
}
