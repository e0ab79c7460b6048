"""pydevtensor/_signatures.py, which the build uses before there is a package."""

import importlib.util
from pathlib import Path

_path = Path(__file__).resolve().parents[2] / "pydevtensor" / "_signatures.py"
_spec = importlib.util.spec_from_file_location("_signatures", _path)
assert _spec and _spec.loader
_module = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_module)
Caller, Entries, Layer, Record, REFERENCE, complete, read_doc, resolve, split = (
    getattr(_module, name)
    for name in (
        "Caller",
        "Entries",
        "Layer",
        "Record",
        "REFERENCE",
        "complete",
        "read_doc",
        "resolve",
        "split",
    )
)
