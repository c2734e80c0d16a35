"""A device of Stentor's gateway: messages from an app to this machine and back, over plain HTTP.

Nothing but the standard library is needed, and cryptography where messages are sealed for the device.
"""

from ._backoff import Backoff
from ._device import Device
from ._errors import DeviceRemoved, MissingLibrary, NotRegistered, OutboxFull
from ._message import Message

__all__ = ["Backoff", "Device", "DeviceRemoved", "Message", "MissingLibrary", "NotRegistered", "OutboxFull"]
__version__ = "0.1.0"
