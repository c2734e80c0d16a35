"""The kit itself: what a test can read and choose, and how it fails."""

import json
import os
import select
import signal
import socket
import ssl
import stat
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Dict, Iterator, Optional, Tuple

import pytest
from pytest_stentor import Counts, EmulatorError, FcmEmulator


class Sender:
    """A sender of FCM without a library."""

    def __init__(self, emulator: FcmEmulator) -> None:
        self._emulator = emulator
        self._tls = ssl.create_default_context(cafile=emulator.ca_file)

    def send(self, token: str) -> Tuple[int, Dict[str, Any]]:
        """Sends a message to a token; returns the status and the reply."""
        url = f"{self._emulator.url}/v1/projects/any/messages:send"
        request = urllib.request.Request(url, json.dumps({"message": {"token": token}}).encode())
        request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, context=self._tls, timeout=30) as response:
                return response.status, json.load(response)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)


@pytest.fixture
def emulator(tmp_path: Path) -> Iterator[FcmEmulator]:
    """Starts an emulator of its own whose senders need no access token."""
    with FcmEmulator(program=without_access_tokens(tmp_path)) as started:
        yield started


def without_access_tokens(folder: Path) -> str:
    """Writes a program that starts stentor with settings of its own."""
    settings, program = folder / "settings.json", folder / "stentor"
    settings.write_text('{"auth": {"required": false}}')
    program.write_text(f'#!/bin/sh\nexec "{os.environ["STENTOR_BIN"]}" "$@" --config "{settings}"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return str(program)


def test_messages_are_read_for_all_tokens_or_for_one(emulator: FcmEmulator) -> None:
    sender = Sender(emulator)
    for token in ("a", "b", "a"):
        assert sender.send(token)[0] == 200
    assert [message.token for message in emulator.messages()] == ["a", "b", "a"]
    assert [message.number for message in emulator.messages("a")] == [1, 3]


def test_more_messages_than_a_page_holds_are_all_read(emulator: FcmEmulator) -> None:
    sender = Sender(emulator)
    for number in range(1001):
        sender.send(f"t{number}")
    assert [message.token for message in emulator.messages()][-1] == "t1000"
    assert len(emulator.messages()) == 1001


def test_a_wait_ends_when_the_messages_have_arrived(emulator: FcmEmulator) -> None:
    later = threading.Thread(target=lambda: [Sender(emulator).send(token) for token in ("a", "b", "a")])
    later.start()
    assert len(emulator.wait_for(2, "a", timeout=60)) == 2
    later.join()


def test_a_wait_fails_with_what_has_arrived(emulator: FcmEmulator) -> None:
    Sender(emulator).send("a")
    with pytest.raises(EmulatorError, match="1 of 2 messages for a have arrived in 0.1 s"):
        emulator.wait_for(2, "a", timeout=0.1)


def test_an_answer_is_given_always_or_some_times(emulator: FcmEmulator) -> None:
    sender = Sender(emulator)
    emulator.answer("gone", "UNREGISTERED")
    emulator.answer("busy", "UNAVAILABLE", times=1, retry_after_s=7)
    assert [sender.send("gone")[0], sender.send("gone")[0]] == [404, 404]
    assert [sender.send("busy")[0], sender.send("busy")[0], sender.send("other")[0]] == [503, 200, 200]
    assert emulator.counts("busy") == Counts(attempts=2, accepted=1, rejected=1, validate_only=0)


def test_a_reset_forgets_messages_counts_and_answers(emulator: FcmEmulator) -> None:
    sender = Sender(emulator)
    emulator.answer("gone", "UNREGISTERED")
    sender.send("gone")
    sender.send("phone")
    emulator.reset()
    assert emulator.messages() == []
    assert emulator.counts("gone") == Counts(0, 0, 0, 0)
    assert sender.send("gone")[0] == 200


def test_the_policy_of_the_start_is_in_force_again_after_a_reset(tmp_path: Path) -> None:
    refusing = {"mix": {"accept": 0, "errors": [{"error": {"code": "INTERNAL"}, "weight": 1}]}}
    with FcmEmulator(policy=refusing, program=without_access_tokens(tmp_path)) as emulator:
        sender = Sender(emulator)
        emulator.set_policy({})
        assert sender.send("phone")[0] == 200
        emulator.reset()
        assert sender.send("phone")[0] == 500


def test_an_error_that_the_service_does_not_have_is_refused(emulator: FcmEmulator) -> None:
    with pytest.raises(EmulatorError, match="Unregistered"):
        emulator.answer("gone", "Unregistered")
    assert Sender(emulator).send("gone")[0] == 200


def test_two_emulators_run_beside_each_other(tmp_path: Path) -> None:
    program = without_access_tokens(tmp_path)
    with FcmEmulator(program=program) as one, FcmEmulator(program=program) as other:
        Sender(one).send("phone")
        assert (len(one.messages()), len(other.messages())) == (1, 0)


def test_only_the_account_that_was_made_gets_an_access_token(fcm_emulator: FcmEmulator) -> None:
    account = json.loads(Path(fcm_emulator.credential_file).read_text())
    assert account["token_uri"] == f"{fcm_emulator.url}/token"
    assert account["project_id"] == fcm_emulator.project_id
    assert stat.S_IMODE(os.stat(fcm_emulator.credential_file).st_mode) == 0o600
    assert Sender(fcm_emulator).send("phone")[0] == 401


def test_a_missing_program_is_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STENTOR_BIN", str(tmp_path / "nothing"))
    with pytest.raises(EmulatorError, match="nothing is not a program: set STENTOR_BIN"):
        FcmEmulator()
    monkeypatch.delenv("STENTOR_BIN")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EmulatorError, match="stentor is not in PATH: install it, or set STENTOR_BIN"):
        FcmEmulator()


def test_a_policy_that_cannot_be_used_fails_the_start_with_its_reason() -> None:
    with pytest.raises(EmulatorError, match="unknown field `mixx`"):
        FcmEmulator(policy={"mixx": 1})


def test_an_emulator_that_has_died_is_reported_with_its_code(emulator: FcmEmulator) -> None:
    os.kill(emulator._process._child.pid, signal.SIGKILL)
    with pytest.raises(EmulatorError, match="stentor emulate has ended with code -9"):
        emulator.wait_for(1)


def test_an_emulator_ends_with_the_process_that_has_started_it() -> None:
    program = """
import os, pytest_stentor
emulator = pytest_stentor.FcmEmulator()
print(emulator._process._child.pid, flush=True)
os.kill(os.getpid(), 9)
"""
    started = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, check=False)
    pidfd = open_process(int(started.stdout))
    assert pidfd is None or ended(pidfd)


def open_process(pid: int) -> Optional[int]:
    """Returns a descriptor of the process, or None if it has ended already."""
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        return None


def ended(pidfd: int) -> bool:
    """Waits for the end of a process."""
    readable, _, _ = select.select([pidfd], [], [], 30)
    os.close(pidfd)
    return bool(readable)


def test_a_redirection_ends_with_its_block(fcm_emulator: FcmEmulator) -> None:
    before = (socket.getaddrinfo, socket.socket.connect, os.environ.get("SSL_CERT_FILE"))
    with fcm_emulator.redirect():
        with socket.create_connection(("fcm.googleapis.com", 443)) as connection:
            assert connection.getpeername() == (fcm_emulator.host, fcm_emulator.port)
        assert os.environ["SSL_CERT_FILE"] == fcm_emulator.ca_file
    assert (socket.getaddrinfo, socket.socket.connect, os.environ.get("SSL_CERT_FILE")) == before
