"""Stores: keys and values that processes share, by which they find each other."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from pydevtensor.distributed._errors import DistStoreError

__all__ = ["FileStore", "HashStore", "PrefixStore", "Store"]

DEFAULT_TIMEOUT = timedelta(seconds=300)
_POLL = 0.01  # seconds between looks at a store that does not say when it changes


def seconds_of(timeout: timedelta | float | None, default: timedelta) -> float:
    """A timeout, given as a timedelta or in seconds."""
    given = default if timeout is None else timeout
    if isinstance(given, timedelta):
        return given.total_seconds()
    if isinstance(given, (int, float)) and not isinstance(given, bool):
        return float(given)
    raise TypeError(
        f"timeout is {given!r} ({type(given).__name__}); give a datetime.timedelta"
    )


def _bytes(what: str, value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    raise TypeError(f"{what} is {value!r} ({type(value).__name__}); give str or bytes")


class Store(ABC):
    """Keys (str) and values (bytes) that several processes share.

    get() and wait() wait for keys until `timeout`; DistStoreError then. Derived classes
    change the values as one step, by `_update()`.
    """

    def __init__(self) -> None:
        self._timeout = DEFAULT_TIMEOUT

    @property
    def timeout(self) -> timedelta:
        """How long get() and wait() wait."""
        return self._timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Let get() and wait() wait for `timeout`, a timedelta. TypeError otherwise."""
        if not isinstance(timeout, timedelta):
            raise TypeError(f"timeout is {timeout!r}; give a datetime.timedelta")
        self._timeout = timeout

    @abstractmethod
    def _call(self, name: str, *given: Any) -> Any:
        """Do Values.name(*given) where the values are."""

    @abstractmethod
    def _wait(self, keys: list[str], seconds: float) -> list[str]:
        """Wait for keys; those that are missing after `seconds`."""

    def set(self, key: str, value: str | bytes) -> None:
        """Set a key's value."""
        self._call("set", key, _bytes("value", value))

    def get(self, key: str) -> bytes:
        """A key's value, when there is one."""
        self.wait([key])
        return bytes(self._call("get", key))

    def add(self, key: str, amount: int) -> int:
        """Add an amount to a key's number, 0 at first. The sum."""
        return int(self._call("add", key, int(amount)))

    def append(self, key: str, value: str | bytes) -> None:
        """Append to a key's value."""
        self._call("append", key, _bytes("value", value))

    def compare_set(
        self, key: str, expected_value: str | bytes, desired_value: str | bytes
    ) -> bytes:
        """Set a key's value to desired_value if it is expected_value, or if that is
        empty and there is none. The value afterwards."""
        expected = _bytes("expected_value", expected_value)
        desired = _bytes("desired_value", desired_value)
        return bytes(self._call("compare_set", key, expected, desired))

    def check(self, keys: Sequence[str]) -> bool:
        """Whether there are all of these keys."""
        return bool(self._call("check", list(keys)))

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Wait for keys. DistStoreError if some are missing after the timeout."""
        if isinstance(keys, str):
            raise TypeError(f"wait(): keys is {keys!r}; give a list of str")
        seconds = seconds_of(timeout, self._timeout)
        if missing := self._wait(list(keys), seconds):
            raise DistStoreError(
                f"wait(): no process has set {', '.join(map(repr, missing))} within "
                f"{seconds:g} s; start all ranks, or give a longer timeout"
            )

    def delete_key(self, key: str) -> bool:
        """Delete a key. Whether there was one."""
        return bool(self._call("delete_key", key))

    def num_keys(self) -> int:
        """How many keys there are."""
        return int(self._call("num_keys"))

    def list_keys(self) -> list[str]:
        """All keys."""
        return list(self._call("list_keys"))

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """The values of keys, when there are all."""
        self.wait(keys)
        return [self.get(key) for key in keys]

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        """Set the values of keys."""
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)


class Values:
    """The keys and values of a store, and what can be done with them in one step."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}

    def set(self, key: str, value: bytes) -> None:
        self.values[key] = value

    def get(self, key: str) -> bytes:
        return self.values[key]

    def add(self, key: str, amount: int) -> int:
        total = int(self.values.get(key, b"0")) + amount
        self.values[key] = str(total).encode()
        return total

    def append(self, key: str, value: bytes) -> None:
        self.values[key] = self.values.get(key, b"") + value

    def compare_set(self, key: str, expected: bytes, desired: bytes) -> bytes:
        if self.values.get(key, b"") == expected:
            self.values[key] = desired
        return self.values.get(key, expected)

    def check(self, keys: list[str]) -> bool:
        return all(key in self.values for key in keys)

    def missing(self, keys: list[str]) -> list[str]:
        return [key for key in keys if key not in self.values]

    def delete_key(self, key: str) -> bool:
        return self.values.pop(key, None) is not None

    def num_keys(self) -> int:
        return len(self.values)

    def list_keys(self) -> list[str]:
        return list(self.values)


class HashStore(Store):
    """A store of this process, for its threads.

    >>> store = torch.distributed.HashStore()
    >>> store.set('name', 'value')
    >>> store.get('name')
    b'value'
    """

    def __init__(self) -> None:
        super().__init__()
        self._values = Values()
        self._changed = threading.Condition()

    def _call(self, name: str, *given: Any) -> Any:
        with self._changed:
            result = getattr(self._values, name)(*given)
            self._changed.notify_all()
            return result

    def _wait(self, keys: list[str], seconds: float) -> list[str]:
        with self._changed:
            self._changed.wait_for(lambda: self._values.check(keys), seconds)
            return self._values.missing(keys)


def poll(missing: Callable[[], list[str]], seconds: float) -> list[str]:
    """Call missing() until it returns nothing, or for `seconds`; what it returned."""
    end = time.monotonic() + seconds
    while (found := missing()) and time.monotonic() < end:
        time.sleep(_POLL)
    return found


class FileStore(Store):
    """A store in a file, for the processes of one machine, or of several that share it.

    file_name: path, made by the first process that uses it. It stays there: give
    another one for each run. world_size: how many processes use it; -1: any number.
    """

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        super().__init__()
        self._path = os.fspath(file_name)
        # Appending makes it without emptying another process's.
        with open(self._path, "ab"):
            pass

    @property
    def path(self) -> str:
        """The path of the file."""
        return self._path

    def _call(self, name: str, *given: Any) -> Any:
        with open(self._path, "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            values = Values()
            if data := file.read():
                values.values = _decode(self._path, data)
            result = getattr(values, name)(*given)
            if name not in ("get", "check", "missing", "num_keys", "list_keys"):
                file.seek(0)
                file.truncate()
                file.write(_encode(values.values))
            return result

    def _wait(self, keys: list[str], seconds: float) -> list[str]:
        return poll(lambda: list(self._call("missing", keys)), seconds)


def _encode(values: dict[str, bytes]) -> bytes:
    rows = (
        f"{len(name)} {len(value)}\n".encode() + name + value
        for key, value in values.items()
        for name in [key.encode()]
    )
    return b"".join(rows)


def _decode(path: str, data: bytes) -> dict[str, bytes]:
    values, at = {}, 0
    try:
        while at < len(data):
            end = data.index(b"\n", at)
            name, value = map(int, data[at:end].split())
            begin = end + 1 + name
            values[data[end + 1 : begin].decode()] = data[begin : begin + value]
            at = begin + value
    except ValueError:
        raise DistStoreError(
            f"{path} is not a file of FileStore; give the path of a new file"
        ) from None
    return values


class PrefixStore(Store):
    """Another store, with a prefix before each key.

    >>> store = torch.distributed.HashStore()
    >>> torch.distributed.PrefixStore('first', store).set('key', 'value')
    >>> store.get('first/key')
    b'value'
    """

    def __init__(self, prefix: str, store: Store) -> None:
        super().__init__()
        if not isinstance(store, Store):
            raise TypeError(f"PrefixStore(): store is {store!r}; give a Store")
        self._prefix, self._store = prefix, store
        self._timeout = store.timeout

    @property
    def underlying_store(self) -> Store:
        """The other store."""
        return self._store

    def _name(self, key: str) -> str:
        return f"{self._prefix}/{key}"

    def _call(self, name: str, *given: Any) -> Any:
        if name == "check":
            return self._store.check([self._name(key) for key in given[0]])
        if given:
            given = (self._name(given[0]), *given[1:])
        return self._store._call(name, *given)

    def _wait(self, keys: list[str], seconds: float) -> list[str]:
        missing = self._store._wait([self._name(key) for key in keys], seconds)
        return [key.removeprefix(self._prefix + "/") for key in missing]
