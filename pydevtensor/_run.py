"""`python -m pydevtensor run`: runs a program in which torch is this package."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from pydevtensor import install_as_torch


def run(arguments: Sequence[str]) -> None:
    """Run a program as `python ARGUMENTS` does, with pydevtensor as torch."""
    install_as_torch()
    main = ModuleType("__main__")
    main.__dict__["__builtins__"] = sys.modules["builtins"]
    sys.modules["__main__"] = main
    _show_only_the_program()
    kind = arguments[0] if arguments[0] in ("-m", "-c") else "script"
    given = arguments[kind != "script" :]
    if not given:
        sys.exit(f"python -m pydevtensor run {kind}: give what to run after {kind}")
    first, *rest = given
    sys.argv[:] = [first if kind == "script" else kind, *rest]
    path = os.path.join(os.getcwd(), first)
    safe = sys.flags.safe_path  # python -P, which leaves sys.path[0] out
    if kind == "-m":
        _run_module(first, True)
    elif kind == "-c":
        if not safe:
            sys.path[0] = ""
        import linecache

        code = compile(first, "<string>", "exec", dont_inherit=True)
        # Since Python 3.13 a traceback shows the lines of -c.
        if register := getattr(linecache, "_register_code", None):
            register(code, first, "<string>")
        exec(code, vars(main))
    elif os.path.isdir(path) or _is_archive(path):
        sys.path[: not safe] = [path]
        _run_module("__main__", False)
    else:
        if not safe:
            sys.path[0] = os.path.dirname(os.path.realpath(path))
        exec(_read(path, main), vars(main))


def _run_module(name: str, sets_argv: bool) -> None:
    # The interpreter calls this for `python -m`.
    from runpy import _run_module_as_main  # type: ignore[attr-defined]

    _run_module_as_main(name, sets_argv)


def _read(path: str, main: Any) -> Any:
    """The code of a script, of which the main module says where it is from."""
    from importlib.machinery import SourceFileLoader

    try:
        with open(path, "rb") as file:
            source = file.read()
    except OSError as error:
        reason = f"[Errno {error.errno}] {error.strerror}"
        print(f"{sys.executable}: can't open file {path!r}: {reason}", file=sys.stderr)
        sys.exit(2)
    main.__file__ = path
    main.__cached__ = None
    main.__loader__ = SourceFileLoader("__main__", path)
    return compile(source, path, "exec", dont_inherit=True)


def _is_archive(path: str) -> bool:
    from zipfile import is_zipfile

    return path.endswith((".zip", ".pyz")) and is_zipfile(path)


def _show_only_the_program() -> None:
    """Leave the frames that lead to the program out of the traceback that ends it."""
    import runpy

    files = {__file__, runpy.__file__, sys._getframe(2).f_code.co_filename}
    files |= {"<frozen runpy>", "<frozen importlib._bootstrap>"}
    show = sys.excepthook

    def excepthook(kind: Any, value: Any, trace: Any) -> None:
        while trace is not None and trace.tb_frame.f_code.co_filename in files:
            trace = trace.tb_next
        sys.last_traceback = trace
        show(kind, value.with_traceback(trace), trace)

    sys.excepthook = excepthook
