"""A device of Stentor's gateway: messages from an app to this machine and back, over plain HTTP, with nothing but the standard library."""

from ._backoff import Backoff
from ._device import Device
from ._errors import DeviceRemoved, NotRegistered, OutboxFull
from ._message import Message

__all__ = ["Backoff", "Device", "DeviceRemoved", "Message", "NotRegistered", "OutboxFull"]
__version__ = "0.1.0"
