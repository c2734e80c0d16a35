//! Adapters to the push services: FCM and APNs.
