"""The life of a device: it registers, listens, handles what comes, confirms it, and sends what waits."""

from __future__ import annotations

import logging
import ssl
import threading
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, TypeVar, Union

from ._backoff import Backoff
from ._errors import DeviceRemoved, NotRegistered, Refused, UnknownDevice, Unreachable
from ._folder import Folder, Memory
from ._keys import Keys, generated, opened
from ._message import Message, message_of, message_with
from ._service import Service, Stream

TRIES_MAX_COUNT = 5
"""Times that a message is handed to the program before it is left for the next connection."""
OUTBOX_INTERVAL_SECONDS = 2.0
"""How often the outbox is looked at for what other processes have put there."""
CONNECTION_LIFE_SECONDS = 24 * 3_600.0
"""A connection is made anew after this: only between connections a token is renewed."""
FORMER_INTERVAL_SECONDS = 3_600.0
"""How often the server is asked whether it knows again who the device was."""

_log = logging.getLogger("stentor_device")

T = TypeVar("T")
Handler = Callable[[Message], object]


class Device:
    """This machine as a device. Give handlers, then `run`; `send` may be called at any time, connected or not.

    `folder` remembers who the device is. `key`, whose scope is `join`, is needed to register; what is told of the device is told
    then. With such a key the app's backend has to vouch for `user`, `tags` and private topics: `proof` is what it has signed, or a
    function that fetches that, called when the device registers. `token_life_seconds` is the age at which the token is renewed. With
    `encrypt` the device makes keys, and the server seals for them what it gives; a folder that has keys needs no word. Raises
    MissingLibrary where there are keys and nothing to open with.
    """

    def __init__(
        self,
        folder: Union[str, Path],
        server: str,
        key: Optional[str] = None,
        *,
        platform: str = "linux",
        user: Optional[str] = None,
        proof: Union[str, Callable[[], str], None] = None,
        tags: Sequence[str] = (),
        topics: Sequence[str] = (),
        backoff: Optional[Backoff] = None,
        token_life_seconds: float = 30 * 24 * 3_600.0,
        ssl_context: Optional[ssl.SSLContext] = None,
        encrypt: bool = False,
    ) -> None:
        self._folder = Folder(Path(folder))
        self._server = server
        self._service = Service(server, ssl_context)
        self._key = key
        self._told: Dict[str, Any] = {"platform": platform, "tags": list(tags), "topics": list(topics)}
        if user is not None:
            self._told["user"] = user
        self._proof = proof
        self._backoff = backoff or Backoff()
        self._token_life_seconds = token_life_seconds
        self._own = self._folder.read()
        self._new_keys = generated() if encrypt else None
        kept = self._own.keys if self._own else None
        self._keys = Keys.of(kept) if kept else None
        self._former_tried = float("-inf")
        self._stream: Optional[Stream] = None
        self._stopped = threading.Event()
        self._has_mail = threading.Event()
        self._notification: List[Handler] = []
        self._data: List[Handler] = []
        self._deleted: List[Callable[[int], object]] = []
        self._token: List[Callable[[str], object]] = []

    # === What a program says and asks ===

    def on_notification(self, handler: Handler) -> Handler:
        """Has messages with something for people handed over. A message is confirmed when no handler of it raised anything."""
        self._notification.append(handler)
        return handler

    def on_data(self, handler: Handler) -> Handler:
        """Has messages with something for the program handed over; one with both goes to both kinds of handlers."""
        self._data.append(handler)
        return handler

    def on_deleted(self, handler: Callable[[int], object]) -> Callable[[int], object]:
        """Has it told how many messages the server deleted because too many waited."""
        self._deleted.append(handler)
        return handler

    def on_token(self, handler: Callable[[str], object]) -> Callable[[str], object]:
        """Has the token told, when it is the first one or another one, for an app server that sends to tokens."""
        self._token.append(handler)
        return handler

    @property
    def id(self) -> Optional[str]:
        """Returns the device's id; None until it has registered."""
        return self._own.device if self._own else None

    def send(
        self, data: Mapping[str, Any], *, ttl_seconds: Optional[int] = None, message_id: Optional[str] = None
    ) -> str:
        """Puts a message for the app into the outbox, where it waits for a connection; returns its name.

        It is on disk when this returns. Sent twice under the same name it is one message.
        """
        name = self._folder.put(data, ttl_seconds, message_id)
        self._has_mail.set()
        return name

    def stop(self) -> None:
        """Ends `run`, from a handler or another thread. A message that is being handled is confirmed first."""
        self._stopped.set()
        self._has_mail.set()
        stream = self._stream
        if stream is not None:
            stream.close()

    def run(self) -> None:
        """Is the device until `stop`: connects, and connects again.

        Raises NotRegistered where it never was registered, and DeviceRemoved where it has no key and the server has not known it for
        30 days; everything else is tried again.
        """
        sender = threading.Thread(target=self._send_for_ever, name="stentor-outbox", daemon=True)
        sender.start()
        try:
            self._connect_for_ever()
        finally:
            self.stop()
            sender.join()

    # === Connections ===

    def _connect_for_ever(self) -> None:
        failures = 0
        while not self._stopped.is_set():
            began = time.monotonic()
            try:
                self._listen(self._sealed(self._registered()))
                failures = 0
                continue
            except UnknownDevice:
                self._note_refusal()
                why = "the token opens nothing any more"
            except (Unreachable, Refused, OSError) as error:
                why = str(error)
            if time.monotonic() - began > self._backoff.good_seconds:
                failures = 0
            failures += 1
            wait = self._backoff.wait_seconds(failures)
            if not self._stopped.is_set():
                _log.warning("%s; trying again in %.1f s", why, wait)
                self._stopped.wait(wait)

    def _registered(self) -> Memory:
        """Returns who the device is, registered and with a token that is not old."""
        if self._own is None or time.monotonic() - self._former_tried >= FORMER_INTERVAL_SECONDS:
            self._return_to_former()
        if self._own is not None:
            return self._fresh(self._own)
        was_known = bool(self._folder.former())
        if self._key is None:
            if was_known:
                raise Unreachable("the token opens nothing any more")
            raise NotRegistered("give a key with the scope `join`")
        try:
            joined = self._service.join(self._key, self._told_now())
        except (Refused, UnknownDevice) as error:
            if was_known:
                # The server has known this device, and may know it again.
                raise Unreachable(str(error)) from error
            raise NotRegistered(str(error)) from error
        return self._keep(Memory.of(self._server, joined))

    def _told_now(self) -> Dict[str, Any]:
        proof = self._proof() if callable(self._proof) else self._proof
        return self._told if proof is None else {**self._told, "proof": proof}

    def _return_to_former(self) -> None:
        """Becomes again who the device was, where the server knows that one again: messages may wait for it."""
        self._former_tried = time.monotonic()
        for path, former in self._folder.former():
            try:
                self._service.show(former)
            except (UnknownDevice, Refused):
                continue
            newer, former.refused_since = self._own, 0
            self._keep(former)
            path.unlink()
            _log.warning("the server knows %s again", former.device)
            if newer is not None:
                self._withdraw(newer)
            return

    def _withdraw(self, newer: Memory) -> None:
        """Removes a device that was made in the place of one that is known again."""
        try:
            self._service.withdraw(newer)
        except (Refused, UnknownDevice, Unreachable) as error:
            _log.warning("%s is not removed: %s", newer.device, error)

    def _fresh(self, own: Memory) -> Memory:
        if time.time() - own.token_since <= self._token_life_seconds:
            return own
        try:
            joined = self._service.renew(own)
        except (Refused, Unreachable) as error:
            _log.warning("the token is not renewed: %s", error)
            return own
        # It is kept before it is used: the server forgets the former one when the new one is used, and not before.
        return self._keep(own.renewed(joined))

    def _sealed(self, own: Memory) -> Memory:
        """Sees to it that the server seals before any message comes, where it is to."""
        if own.keys is None and self._new_keys is not None:
            # Kept before they are told: what is sealed from then on can be opened.
            own.keys = dict(self._new_keys)
            self._keep(own)
        self._keys = Keys.of(own.keys) if own.keys else None
        if own.keys and self._keys and not own.keys.get("is_told"):
            self._service.put_keys(own, self._keys.public())
            own.keys["is_told"] = True
            self._keep(own)
        return own

    def _keep(self, own: Memory) -> Memory:
        self._folder.keep(own)
        self._own = own
        return own

    def _note_refusal(self) -> None:
        """Notes that the server does not know the device. That may pass, as after a copy of its data was put back: nothing is erased."""
        own = self._own
        if own is None:
            return
        own.refused_since = own.refused_since or int(time.time())
        if self._key is not None:
            self._folder.keep_former(own)
            self._own = None
        elif own.is_over():
            raise DeviceRemoved("the device was removed from its app; register it anew with a key")
        else:
            self._folder.keep(own)

    def _listen(self, own: Memory) -> None:
        """Handles what comes; returns when the connection is old or the device is stopped."""
        until = time.monotonic() + CONNECTION_LIFE_SECONDS
        self._stream = stream = self._service.events(own)
        own.refused_since = 0
        try:
            self._has_mail.set()
            self._tell_token(own)
            if self._stopped.is_set():
                return
            for event in stream.events():
                if event is not None:
                    self._take(own, *event)
                if self._stopped.is_set() or time.monotonic() > until:
                    return
        except Unreachable:
            if not self._stopped.is_set():
                raise
        finally:
            self._stream = None
            stream.close()

    # === Messages ===

    def _take(self, own: Memory, name: str, data: str) -> None:
        try:
            news = message_of(data) if name == "message" else int(data) if name == "deleted" else None
        except (KeyError, ValueError) as error:
            raise Unreachable(f"an event cannot be read: {error}") from error
        if isinstance(news, Message):
            self._take_message(own, news)
        elif news is not None:
            _is_told(self._deleted, news)

    def _take_message(self, own: Memory, message: Message) -> None:
        if message.id not in own.seen:
            clear = self._opened(message)
            if clear is not None and not self._is_handled(clear):
                return
            # Remembered before it is confirmed: what is confirmed never comes again.
            own.note_seen(message.id)
            self._folder.keep(own)
        self._service.confirm(own, message.id)

    def _opened(self, message: Message) -> Optional[Message]:
        """Returns a message as it was before it was sealed; None for what nobody will ever open, so that it does not come for ever."""
        if "sealed" not in message.whole:
            return message
        try:
            if self._keys is None:
                raise ValueError("this device has no keys")
            return message_with(opened(message.whole, self._keys))
        except (KeyError, TypeError, ValueError) as error:
            _log.warning("%s: %s; it is given up", message.id, error)
            return None

    def _is_handled(self, message: Message) -> bool:
        for tries in range(1, TRIES_MAX_COUNT + 1):
            try:
                self._handle(message)
                return True
            except Exception:
                # Whatever the program raises, its message must not be lost, and others must not wait for ever.
                _log.exception("%s is not handled, try %d of %d", message.id, tries, TRIES_MAX_COUNT)
            if tries == TRIES_MAX_COUNT or self._stopped.wait(self._backoff.wait_seconds(tries)):
                break
        return False

    def _handle(self, message: Message) -> None:
        if message.notification:
            for handler in self._notification:
                handler(message)
        # What has neither, such as bytes of the app's own, is for the program too.
        if message.data or not message.notification:
            for handler in self._data:
                handler(message)

    def _tell_token(self, own: Memory) -> None:
        """Tells a token once it is known to open the door: sent to before that, it would lead nowhere."""
        if not self._token or own.told_token == own.token:
            return
        if _is_told(self._token, own.token):
            own.told_token = own.token
            self._folder.keep(own)

    # === The outbox ===

    def _send_for_ever(self) -> None:
        failures = 0
        while not self._stopped.is_set():
            try:
                self._send_waiting()
                failures = 0
                self._has_mail.wait(OUTBOX_INTERVAL_SECONDS)
                self._has_mail.clear()
            except (Unreachable, UnknownDevice, OSError) as error:
                # What the token is worth, the other thread finds out.
                failures += 1
                wait = self._backoff.wait_seconds(failures)
                _log.info("the outbox waits %.1f s: %s", wait, error)
                self._stopped.wait(wait)

    def _send_waiting(self) -> None:
        for path in self._folder.waiting():
            own = self._own
            if own is None or self._stream is None or self._stopped.is_set():
                return
            message = self._folder.message(path)
            if message is None:
                continue
            try:
                self._service.send(own, message)
            except Refused as error:
                _log.warning("%s is refused and set aside: %s", path.stem, error)
                self._folder.set_aside(path)
                continue
            path.unlink()


def _is_told(handlers: Sequence[Callable[[T], object]], news: T) -> bool:
    """Tells all; what one of them raises is logged, and then it counts as not told."""
    try:
        for handler in handlers:
            handler(news)
    except Exception:
        _log.exception("a handler failed")
        return False
    return True
