//! Why a delivery is where it is.

use crate::codes::codes;

codes! {
    /// Why a delivery is where it is; kept as one byte in the ledger, so codes are never reused.
    Reason {
        /// Nothing to explain.
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
        /// The push service asks to slow down.
        Throttled = 8, "throttled";
        /// The push service, or the way to it, is down.
        Unavailable = 9, "unavailable";
        /// Written, never answered.
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
        /// The push service answered something that its documents do not name.
        UnknownAnswer = 21, "unknown_answer";
        /// What is kept about it cannot be read or written any more.
        Damaged = 22, "damaged";
        /// The push service's endpoint has only addresses that the server may not connect to.
        AddressRefused = 23, "address_refused";
        /// More waited for the device than it may have waiting: it was told that messages were deleted.
        TooManyPending = 24, "too_many_pending";
    }
}
