"""Emulators of FCM and APNs for tests of programs that send push messages."""

from ._control import EmulatorError
from ._emulator import ApnsEmulator, ArrivedMessage, Counts, Emulator, FcmEmulator

__all__ = ["ApnsEmulator", "ArrivedMessage", "Counts", "Emulator", "EmulatorError", "FcmEmulator"]
