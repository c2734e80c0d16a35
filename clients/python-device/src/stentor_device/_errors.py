"""What a device is told by its own library; what the server may still do later raises nothing."""

from __future__ import annotations


class NotRegistered(Exception):
    """The device cannot register: no key was given, or the server refuses it for good."""


class DeviceRemoved(Exception):
    """The device was removed from its app 30 days ago, and has no key to register anew."""


class OutboxFull(Exception):
    """Too many messages wait to be sent already."""


class MissingLibrary(ImportError):
    """The device gets sealed messages, and what opens them is not installed."""


class Unreachable(Exception):
    """The server did not answer, or cannot do it now: it is tried again."""


class UnknownDevice(Exception):
    """The device's token opens nothing."""


class Refused(Exception):
    """The server will never do what was asked."""
