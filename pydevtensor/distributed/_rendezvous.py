"""Finds the store by which the ranks of a program meet, and this process's rank."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import timedelta
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

from pydevtensor.distributed._stores import FileStore, Store
from pydevtensor.distributed._tcp_store import TCPStore

__all__ = ["rendezvous"]

# Names that launchers give to a process's rank and the number of processes.
RANK = ("RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID")
SIZE = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS")
LOCAL_RANK = (
    "LOCAL_RANK",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "MPI_LOCALRANKID",
    "SLURM_LOCALID",
)


class Meeting(NamedTuple):
    """Where ranks meet: a store, this process's rank, and how many there are."""

    store: Store
    rank: int
    size: int


def from_environment(names: tuple[str, ...]) -> int | None:
    """The number that the first of these variables has; None if there is none."""
    for name in names:
        if text := os.environ.get(name):
            try:
                return int(text)
            except ValueError:
                raise ValueError(f"{name} is {text!r}; set it to a number") from None
    return None


def _number(what: str, given: int, names: tuple[str, ...]) -> int:
    found = given if given >= 0 else from_environment(names)
    if found is None:
        raise ValueError(
            f"{what} is not known; start the program with `python "
            "-m pydevtensor launch --nproc-per-node=N program.py`, set the environment "
            f"variable {names[0]}, or give {what}"
        )
    return found


def _ranks(rank: int, size: int) -> tuple[int, int]:
    size = _number("world_size", size, SIZE)
    rank = _number("rank", rank, RANK)
    if size < 1 or not 0 <= rank < size:
        raise ValueError(
            f"rank is {rank} and world_size {size}; ranks are 0 to world_size - 1"
        )
    return rank, size


def meet(url: str, rank: int, size: int, timeout: timedelta) -> Meeting:
    """The store of an init_method: 'env://', 'tcp://host:port' or 'file:///path'."""
    parts = urlsplit(url)
    said = {key: values[0] for key, values in parse_qs(parts.query).items()}
    rank = int(said.get("rank", rank)) if rank < 0 else rank
    size = int(said.get("world_size", size)) if size < 0 else size
    rank, size = _ranks(rank, size)
    if parts.scheme == "file":
        path = parts.netloc + parts.path
        if not path:
            raise ValueError(
                f"init_method is {url!r}; give 'file:///path/of/a/new/file'"
            )
        store: Store = FileStore(path, size)
        store.set_timeout(timeout)
        return Meeting(store, rank, size)
    if parts.scheme == "tcp":
        host, port = parts.hostname, parts.port
    elif parts.scheme == "env":
        host, port = _address()
    else:
        raise ValueError(
            f"init_method is {url!r}; give 'env://', 'tcp://127.0.0.1:29500' or "
            "'file:///path/of/a/new/file'"
        )
    if not host or port is None:
        raise ValueError(f"init_method is {url!r}; give 'tcp://127.0.0.1:29500'")
    return Meeting(_tcp_store(host, port, rank, size, timeout), rank, size)


# They live as long as the process: a rank that begins again must not meet the server of
# a group that another rank has not left yet.
_tcp_stores: dict[tuple[int, str, int], TCPStore] = {}


def _tcp_store(
    host: str, port: int, rank: int, size: int, timeout: timedelta
) -> TCPStore:
    key = os.getpid(), host, port
    if key not in _tcp_stores:
        _tcp_stores[key] = TCPStore(host, port, size, rank == 0, timeout)
    _tcp_stores[key].set_timeout(timeout)
    return _tcp_stores[key]


def _address() -> tuple[str, int]:
    host, port = os.environ.get("MASTER_ADDR"), os.environ.get("MASTER_PORT")
    if not host or not port:
        missing = "MASTER_PORT" if host else "MASTER_ADDR"
        raise ValueError(
            f"the environment variable {missing} is not set; "
            "start the program with `python -m pydevtensor launch`, set MASTER_ADDR="
            "127.0.0.1 and MASTER_PORT=29500, or give init_method='file:///path'"
        )
    if not port.isdigit():
        raise ValueError(f"MASTER_PORT is {port!r}; set it to a number, such as 29500")
    return host, int(port)


def rendezvous(
    url: str, rank: int = -1, world_size: int = -1, timeout: timedelta | None = None
) -> Iterator[tuple[Store, int, int]]:
    """Yield the store, the rank and the number of ranks that an init_method means.

    url: 'env://', 'tcp://host:port' or 'file:///path'. rank, world_size: -1: as the
    environment says. timeout: to wait for the store, 5 minutes without it. ValueError
    where one of them is not known.
    """
    found = meet(url, rank, world_size, timeout or timedelta(minutes=5))
    yield found.store, found.rank, found.size
