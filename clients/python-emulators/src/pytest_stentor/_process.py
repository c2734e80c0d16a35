"""The process of an emulator: the program, its start, its end."""

from __future__ import annotations

import json
import os
import selectors
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Dict, List, Optional

from ._control import EmulatorError

START_SECONDS_MAX = 60.0
STOP_SECONDS_MAX = 10.0
END_SECONDS_MAX = 1.0
# The end of a log that an error shows.
LOG_BYTES_MAX = 4096


def find_program(program: Optional[str]) -> str:
    """Returns the path of stentor: the given one, that of STENTOR_BIN, or the first in PATH."""
    wanted = program or os.environ.get("STENTOR_BIN")
    found = shutil.which(wanted or "stentor")
    if found:
        return found
    if wanted:
        raise EmulatorError(f"{wanted} is not a program: set STENTOR_BIN to the path of stentor")
    raise EmulatorError("stentor is not in PATH: install it, or set STENTOR_BIN to its path")


class EmulatorProcess:
    """A running `stentor emulate`, with a folder for its files."""

    def __init__(self, service: str, credential: str, policy: Dict[str, Any], program: Optional[str]) -> None:
        stentor = find_program(program)
        self._folder = tempfile.TemporaryDirectory(prefix="stentor-")
        folder = Path(self._folder.name)
        self._log = folder / "log"
        arguments = _arguments(service, folder, folder / credential, policy)
        with self._log.open("wb") as log:
            # The emulator ends with its input, which ends with this process, however that ends.
            self._child = subprocess.Popen(
                [stentor, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log
            )
        try:
            self.ready: Dict[str, Any] = json.loads(self._first_line())
            if "error" in self.ready:
                raise EmulatorError(self.ended())
        except BaseException:
            self.stop()
            raise

    def ended(self) -> Optional[str]:
        """Returns why the emulator has ended, or None while it runs."""
        try:
            # A port may be gone a moment before its process.
            self._child.wait(END_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            return None
        if not self._log.exists():
            return "the emulator was stopped"
        log = self._log.read_bytes()[-LOG_BYTES_MAX:].decode(errors="replace").strip()
        return f"stentor emulate has ended with code {self._child.returncode}: {log or 'its log is empty'}"

    def stop(self) -> None:
        """Ends the emulator and removes its files."""
        self._child.terminate()
        try:
            self._child.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        for pipe in (self._child.stdin, self._child.stdout):
            if pipe:
                pipe.close()
        self._folder.cleanup()

    def _first_line(self) -> bytes:
        assert self._child.stdout
        output, line = self._child.stdout.fileno(), b""
        deadline = time.monotonic() + START_SECONDS_MAX
        with selectors.DefaultSelector() as selector:
            selector.register(output, selectors.EVENT_READ)
            while not line.endswith(b"\n"):
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise EmulatorError(f"stentor emulate is not ready after {START_SECONDS_MAX:.0f} s")
                piece = os.read(output, 65536)
                if not piece:
                    self._child.wait()
                    raise EmulatorError(self.ended())
                line += piece
        return line


def _arguments(service: str, folder: Path, credential: Path, policy: Dict[str, Any]) -> List[str]:
    return [
        *("emulate", service, "--json", "--end-with-input"),
        *("--listen", "127.0.0.1:0", "--control", "127.0.0.1:0"),
        *("--ca-dir", str(folder), "--credential", str(credential)),
        *("--keep-messages", "10000", "--policy", json.dumps(policy)),
    ]
