//! The other side of every push service: emulators, observer, sink.
