"""Fixtures: an emulator for each session, and with pytest-xdist for each worker, reset before each test."""

from __future__ import annotations

from typing import Iterator

import pytest

from ._emulator import ApnsEmulator, FcmEmulator


@pytest.fixture(scope="session")
def fcm_of_session() -> Iterator[FcmEmulator]:
    """Starts an emulator of FCM for the session."""
    with FcmEmulator() as emulator:
        yield emulator


@pytest.fixture(scope="session")
def apns_of_session() -> Iterator[ApnsEmulator]:
    """Starts an emulator of APNs for the session."""
    with ApnsEmulator() as emulator:
        yield emulator


@pytest.fixture
def fcm_emulator(fcm_of_session: FcmEmulator) -> FcmEmulator:
    """Returns the emulator of FCM without messages, counts and answers of other tests."""
    fcm_of_session.reset()
    return fcm_of_session


@pytest.fixture
def apns_emulator(apns_of_session: ApnsEmulator) -> ApnsEmulator:
    """Returns the emulator of APNs without messages, counts and answers of other tests."""
    apns_of_session.reset()
    return apns_of_session
