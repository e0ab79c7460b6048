"""Starts several processes that run one function: torch.multiprocessing.spawn()."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from multiprocessing import connection
from typing import Any

from pydevtensor._names import give
from pydevtensor._signatures import like

__all__ = ["ProcessContext", "ProcessExitedException", "ProcessRaisedException"]
__all__ += ["SpawnContext", "spawn", "start_processes"]


class ProcessException(Exception):
    """A process of spawn() has failed: number error_index, whose id is error_pid."""

    def __init__(self, message: str, error_index: int, error_pid: int) -> None:
        super().__init__(message)
        self.msg, self.error_index, self.pid = message, error_index, error_pid

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """A process of spawn() has raised an error, whose traceback the message has."""


class ProcessExitedException(ProcessException):
    """A process of spawn() has ended, by a signal or with a status of its own."""

    def __init__(
        self,
        message: str,
        error_index: int,
        error_pid: int,
        exit_code: int,
        signal_name: str | None = None,
    ) -> None:
        super().__init__(message, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name

    def __reduce__(self) -> Any:
        given = self.msg, self.error_index, self.pid, self.exit_code, self.signal_name
        return type(self), given


def _run(fn: Callable[..., Any], i: int, args: tuple[Any, ...], file: str) -> None:
    try:
        fn(i, *args)
    except KeyboardInterrupt:
        pass  # the process that waits says so
    except Exception:
        with open(file, "wb") as out:
            pickle.dump(traceback.format_exc(), out)
        sys.exit(1)


class ProcessContext:
    """Processes that spawn(join=False) has started."""

    def __init__(self, processes: list[Any], files: list[str]) -> None:
        self.processes, self._files = processes, files
        self.sentinels = {each.sentinel: i for i, each in enumerate(processes)}

    def pids(self) -> list[int]:
        """The processes' ids."""
        return [int(each.pid) for each in self.processes]

    def join(
        self, timeout: float | None = None, grace_period: float | None = None
    ) -> bool:
        """Wait for some process to end. Whether all have ended.

        timeout: seconds to wait; None: no limit. grace_period: seconds that the others
        get to end by themselves after one has failed. ProcessRaisedException with the
        traceback, or ProcessExitedException, if one has failed; the others are ended.
        """
        if not self.sentinels:
            return True
        failed = None
        for sentinel in connection.wait([*self.sentinels], timeout):
            i = self.sentinels.pop(sentinel)
            self.processes[i].join()
            if self.processes[i].exitcode:
                failed = i
                break
        if failed is None:
            if not self.sentinels:
                self._clean_up()
            return not self.sentinels
        self._end_others(grace_period or 0)
        self._raise(failed)
        return False

    def _end_others(self, grace_period: float) -> None:
        end = time.monotonic() + grace_period
        for stop in (None, "terminate", "kill"):
            for each in self.processes:
                if stop and each.is_alive():
                    getattr(each, stop)()
            for each in self.processes:
                each.join(max(0.0, end - time.monotonic()))
            end = time.monotonic() + 30

    def _raise(self, i: int) -> None:
        process, file = self.processes[i], self._files[i]
        pid, code = int(process.pid), int(process.exitcode)
        text = ""
        if os.path.getsize(file):
            with open(file, "rb") as source:
                text = pickle.load(source)
        self._clean_up()
        if text:
            message = f"\n\n-- Process {i} terminated with the following error:\n{text}"
            raise ProcessRaisedException(message, i, pid)
        if code < 0:
            name = signal.Signals(-code).name
            message = f"process {i} terminated with signal {name}"
            raise ProcessExitedException(message, i, pid, code, name)
        message = f"process {i} terminated with exit code {code}"
        raise ProcessExitedException(message, i, pid, code)

    def _clean_up(self) -> None:
        for file in self._files:
            os.unlink(file)
        self._files = []


SpawnContext = ProcessContext


def start_processes(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Start nprocs processes, of which number i calls fn(i, *args).

    join: wait for all of them; an error of one ends the others and is raised here as
    ProcessRaisedException, or ProcessExitedException. Without it, a ProcessContext to
    wait for. daemon: they end with this process. start_method: 'spawn', 'fork' or
    'forkserver'.
    """
    context: Any = multiprocessing.get_context(start_method)
    processes, files = [], []
    for i in range(nprocs):
        handle, file = tempfile.mkstemp(prefix="pydevtensor-")
        os.close(handle)
        process = context.Process(target=_run, args=(fn, i, args, file), daemon=daemon)
        process.start()
        processes.append(process)
        files.append(file)
    made = ProcessContext(processes, files)
    if not join:
        return made
    while not made.join():
        pass
    return None


@like(start_processes)
def spawn(*args: Any, **named: Any) -> ProcessContext | None:
    """The same as start_processes()."""
    return start_processes(*args, **named)


for each in (ProcessException, ProcessRaisedException, ProcessExitedException):
    give("pydevtensor.multiprocessing", each)
