"""The emulators of FCM and APNs, as a test sees them."""

from __future__ import annotations

import http.client
import time
from dataclasses import dataclass
from typing import Any, ClassVar, ContextManager, Dict, List, Optional, Tuple, TypeVar

from ._control import EmulatorError, ask
from ._process import EmulatorProcess
from ._redirect import redirected

# The longest wait of one request for messages.
WAIT_SECONDS_MAX = 30.0

E = TypeVar("E", bound="Emulator")


@dataclass(frozen=True)
class ArrivedMessage:
    """A message that the emulator has accepted."""

    number: int
    #: The token, /topics/NAME or condition (FCM), or the channel of a broadcast (APNs).
    token: str
    #: The message as it was sent: the field `message` of FCM's request, the body of APNs' request.
    payload: Dict[str, Any]
    message_id: str
    collapse_key: Optional[str]
    #: The topic: FCM's, or the header `apns-topic`.
    topic: Optional[str]
    push_type: Optional[str]
    high_priority: bool


@dataclass(frozen=True)
class Counts:
    """The requests for one token."""

    attempts: int
    accepted: int
    rejected: int
    validate_only: int


class Emulator:
    """An emulator in a process of its own, on free ports of this machine; it ends with this process at the latest."""

    _service: ClassVar[str]
    _credential: ClassVar[str]
    _hosts: ClassVar[Tuple[str, ...]]

    def __init__(self, *, policy: Optional[Dict[str, Any]] = None, program: Optional[str] = None) -> None:
        """Starts the emulator. The policy is its own until another one is set, and again after a reset."""
        self._policy = policy or {}
        self._answers: List[Dict[str, Any]] = []
        self._process = EmulatorProcess(self._service, self._credential, self._policy, program)
        ready = self._process.ready
        #: The URL of the push service.
        self.url: str = ready["url"]
        self.host, port = ready["address"].rsplit(":", 1)
        self.port = int(port)
        #: The certificate that clients must trust.
        self.ca_file: str = ready["ca_file"]
        #: The URL of the control port (docs/emulators.md).
        self.control: str = ready["control"]
        self._made: Dict[str, str] = ready["credential"]
        self.credential_file: str = self._made["file"]

    def messages(self, token: Optional[str] = None) -> List[ArrivedMessage]:
        """Returns the messages that were accepted since the last reset, the latest 10,000: all, or those for a token."""
        return self._of(self._behind(0, 0.0), token)

    def wait_for(self, count: int = 1, token: Optional[str] = None, timeout: float = 10.0) -> List[ArrivedMessage]:
        """Waits until this number of messages has been accepted, and returns them; raises EmulatorError after `timeout` seconds."""
        deadline = time.monotonic() + timeout
        arrived = self._behind(0, 0.0)
        while True:
            found = self._of(arrived, token)
            left = deadline - time.monotonic()
            if len(found) >= count:
                return found
            if left <= 0:
                of = "" if token is None else f" for {token}"
                raise EmulatorError(f"{len(found)} of {count} messages{of} have arrived in {timeout:g} s")
            arrived += self._behind(arrived[-1].number if arrived else 0, min(left, WAIT_SECONDS_MAX))

    def answer(
        self, token: str, error: str, *, times: Optional[int] = None, retry_after_s: Optional[int] = None
    ) -> None:
        """Refuses a token with an error of the push service: always, or the next `times`. The latest call for a token counts."""
        refusal: Dict[str, Any] = {"error": {"code": error}}
        if retry_after_s is not None:
            refusal["error"]["retry_after_s"] = retry_after_s
        script: Dict[str, Any] = {"token": self._name(token)}
        script.update({"then": refusal} if times is None else {"answers": [{"answer": refusal, "times": times}]})
        answers = [script, *self._answers]
        self._put({**self._policy, "scripts": [*answers, *self._policy.get("scripts", [])]})
        self._answers = answers

    def set_policy(self, policy: Dict[str, Any]) -> None:
        """Replaces the policy (docs/emulators.md#policies) and all answers, until the next reset."""
        self._put(policy)
        self._answers = []

    def counts(self, token: str) -> Counts:
        """Returns the counts of a token or of /topics/NAME since the last reset."""
        return Counts(**self._ask("GET", f"/tokens/{self._name(token)}"))

    def reset(self) -> None:
        """Forgets messages, counts and answers, and returns to the policy of the start."""
        self._ask("POST", "/reset")
        self._answers = []

    def redirect(self) -> ContextManager[None]:
        """Leads connections of this process to the vendor's hosts to the emulator, and makes it trust the emulator's authority alone."""
        return redirected(self._hosts, (self.host, self.port), self.ca_file)

    def stop(self) -> None:
        """Ends the emulator and removes its files."""
        self._process.stop()

    def __enter__(self: E) -> E:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _name(self, token: str) -> str:
        return token

    def _put(self, policy: Dict[str, Any]) -> None:
        self._ask("PUT", "/policy", policy)

    def _behind(self, number: int, wait: float) -> List[ArrivedMessage]:
        arrived: List[ArrivedMessage] = []
        while True:
            # Only the first page may be waited for.
            wait_ms = 0 if arrived else int(wait * 1000)
            page = self._ask("GET", f"/messages?after={number}&wait_ms={wait_ms}")["messages"]
            if not page:
                return arrived
            arrived += [ArrivedMessage(**one) for one in page]
            number = arrived[-1].number

    def _of(self, arrived: List[ArrivedMessage], token: Optional[str]) -> List[ArrivedMessage]:
        return [one for one in arrived if token is None or one.token == self._name(token)]

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        try:
            return ask(self.control, method, path, body)
        except (OSError, http.client.HTTPException) as error:
            raise EmulatorError(self._process.ended() or f"the emulator does not answer: {error}") from error


class FcmEmulator(Emulator):
    """An emulator of Firebase Cloud Messaging (HTTP v1)."""

    _service = "fcm"
    _credential = "service-account.json"
    _hosts = ("fcm.googleapis.com", "oauth2.googleapis.com", "iid.googleapis.com", "iamcredentials.googleapis.com")

    @property
    def project_id(self) -> str:
        """The project of the service account."""
        return self._made["project_id"]


class ApnsEmulator(Emulator):
    """An emulator of the Apple Push Notification service."""

    _service = "apns"
    _credential = "AuthKey.p8"
    _hosts = ("api.push.apple.com", "api.sandbox.push.apple.com", "api.development.push.apple.com")

    @property
    def key_id(self) -> str:
        """The id of the signing key."""
        return self._made["key_id"]

    @property
    def team_id(self) -> str:
        """The team of the signing key."""
        return self._made["team_id"]

    def _name(self, token: str) -> str:
        # Both spellings of a token are the same device.
        return token.lower()
