"""A store over TCP: one process serves it, the others connect to it."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from contextlib import suppress
from datetime import timedelta
from typing import Any

from pydevtensor.distributed._errors import DistNetworkError, DistStoreError
from pydevtensor.distributed._stores import (
    DEFAULT_TIMEOUT,
    HashStore,
    Store,
    Values,
    poll,
)

__all__ = ["TCPStore"]

_LARGEST = 1 << 26  # bytes of a message: whoever can connect may send one
_STEPS = {name for name in vars(Values) if name[0] != "_"}
_SLICE = 1.0  # seconds that the server waits for a key before it answers


class TCPStore(Store):
    """A store that one process serves on a TCP port, and others connect to.

    host_name, port: of the server; port 0, for the server: one that is free.
    world_size: with wait_for_workers, the server waits until so many, itself included,
    have connected. is_master: whether this process serves. timeout: of connecting,
    get() and wait().

    multi_tenant, master_listen_fd and use_libuv change nothing.

    Whoever can connect to the port can read and change the store, as with PyTorch's:
    the server listens at the address that host_name means, which is 127.0.0.1 for ranks
    of one machine.
    """

    def __init__(
        self,
        host_name: str,
        port: int = 29500,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: timedelta = DEFAULT_TIMEOUT,
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: int | None = None,
        use_libuv: bool = True,
    ) -> None:
        super().__init__()
        self.set_timeout(timeout)
        self.host = host_name
        self._server = _Server(host_name, port, multi_tenant) if is_master else None
        self.port = self._server.port if self._server else port
        self._lock = threading.Lock()
        self._socket = self._connect()
        if world_size and wait_for_workers:
            self.add("workers", 1)
            if is_master:
                self._await_workers(world_size)

    def _connect(self) -> socket.socket:
        seconds = self._timeout.total_seconds()
        end = time.monotonic() + seconds
        while True:
            try:
                made = socket.create_connection((self.host, self.port), timeout=5)
                made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                made.settimeout(None)
                return made
            except OSError as error:
                if time.monotonic() > end:
                    raise DistNetworkError(
                        f"TCPStore(): no connection to {self.host}:{self.port} within "
                        f"{seconds:g} s ({error}); start the process with rank 0 "
                        "there, and check MASTER_ADDR and MASTER_PORT"
                    ) from None
                time.sleep(0.05)

    def _await_workers(self, world_size: int) -> None:
        def missing() -> list[str]:
            come = self.add("workers", 0)
            return [] if come >= world_size else [f"{come} of {world_size}"]

        if come := poll(missing, self._timeout.total_seconds()):
            raise DistStoreError(
                f"TCPStore(): {come[0]} processes have connected within "
                f"{self._timeout.total_seconds():g} s; start the others, or give the "
                "right world_size"
            )

    def _call(self, name: str, *given: Any) -> Any:
        with self._lock:
            try:
                _send(self._socket, [name, *given])
                status, result = _receive(self._socket)
            except (OSError, EOFError) as error:
                raise DistNetworkError(
                    f"{name}(): the connection to the store at {self.host}:{self.port} "
                    f"is lost ({error}); the process with rank 0 has ended, or left"
                ) from None
        if status == "error":
            raise DistStoreError(result)
        return result

    def _wait(self, keys: list[str], seconds: float) -> list[str]:
        end = time.monotonic() + seconds
        while True:
            left = max(0.0, min(_SLICE, end - time.monotonic()))
            missing = self._call("wait", keys, left)
            if not missing or time.monotonic() >= end:
                return list(missing)

    def __del__(self) -> None:
        with suppress(AttributeError, OSError):
            self._socket.close()
        with suppress(AttributeError, OSError):
            if self._server:
                # It wakes the thread that accepts.
                self._server.listener.shutdown(socket.SHUT_RDWR)
                self._server.listener.close()


class _Server:
    """Serves a HashStore, with a thread for each connection."""

    def __init__(self, host: str, port: int, shared: bool) -> None:
        self.store = HashStore()
        try:
            family, *_, address = socket.getaddrinfo(
                host, port, type=socket.SOCK_STREAM
            )[0]
            self.listener = socket.create_server(
                address[:2], family=family, backlog=128
            )
        except OSError as error:
            raise DistNetworkError(
                f"TCPStore(): {host}:{port} cannot be listened at ({error}); choose "
                "another MASTER_PORT, or 0 for one that is free"
            ) from None
        self.port = int(self.listener.getsockname()[1])
        threading.Thread(target=self._accept, name="TCPStore", daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):  # the store was closed
            while True:
                connection, _ = self.listener.accept()
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(
                    target=self._serve, args=[connection], daemon=True
                ).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError, EOFError):
            while True:
                answer: list[Any] = ["result", None]
                try:
                    name, *given = _receive(connection)
                    if name == "wait":
                        answer[1] = self.store._wait(*given)
                    elif name in _STEPS:
                        answer[1] = self.store._call(name, *given)
                    else:
                        raise ValueError(f"a store has no {name!r}")
                except (AttributeError, KeyError, TypeError, ValueError) as error:
                    answer = ["error", f"{type(error).__name__}: {error}"]
                _send(connection, answer)


# A message: its length, 4 bytes, and JSON, in which bytes are text of Latin-1 in a
# list.


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"bytes": value.decode("latin-1")}
    raise TypeError(f"{value!r} ({type(value).__name__})")


def _rich(value: dict[str, Any]) -> Any:
    return value["bytes"].encode("latin-1")


def _send(to: socket.socket, message: list[Any]) -> None:
    data = json.dumps(message, default=_plain).encode()
    if len(data) > _LARGEST:
        raise ValueError(
            f"a message of {len(data)} bytes; a TCPStore takes up to {_LARGEST}: send "
            "tensors and large objects with collectives"
        )
    to.sendall(struct.pack("!I", len(data)) + data)


def _receive(source: socket.socket) -> list[Any]:
    (length,) = struct.unpack("!I", _exactly(source, 4))
    if length > _LARGEST:
        raise EOFError("it is not a TCPStore that sends")
    return list(json.loads(_exactly(source, length), object_hook=_rich))


def _exactly(source: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        more = source.recv(count - len(data))
        if not more:
            raise EOFError("the other end has closed it")
        data += more
    return bytes(data)
