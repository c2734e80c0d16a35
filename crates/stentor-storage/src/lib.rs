//! The Store and Queue ports on real engines, and the suites that judge them.
