"""What the headers of the installed libraries say of their protection."""

import os
import re
import sys
from pathlib import Path

import pytest

import pydevtensor

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "build"))

import elf  # noqa: E402

LIBRARIES = sorted(Path(pydevtensor.__file__).parent.glob("*.so"))

pytestmark = pytest.mark.skipif(
    bool(os.environ.get("PYDEVTENSOR_SANITIZE")), reason="not a build for users"
)


@pytest.fixture(params=LIBRARIES, ids=lambda path: path.name.split(".")[0])
def library(request):
    return elf.Library(request.param)


def test_no_memory_is_written_and_executed(library):
    stacks = [flags for kind, flags in library.segments if kind == elf.GNU_STACK]
    assert len(stacks) == 1
    both = elf.EXECUTE | elf.WRITE
    assert [s for s in library.segments if s[1] & both == both] == []


def test_symbols_are_bound_at_load_and_their_table_is_read_only(library):
    tags = dict(library.dynamic)
    assert tags.get(elf.FLAGS, 0) & 8 or tags.get(elf.FLAGS_1, 0) & 1
    assert elf.GNU_RELRO in [kind for kind, _ in library.segments]


def test_no_search_path_and_no_relocated_code(library):
    tags = dict(library.dynamic)
    assert not tags.keys() & {elf.RPATH, elf.RUNPATH, elf.TEXTREL}
    assert not tags.get(elf.FLAGS, 0) & 4


def test_stack_and_buffers_are_guarded(library):
    assert "__stack_chk_fail" in library.lacks
    assert [name for name in library.lacks if name.endswith("cpy_chk")]


def test_only_the_entry_is_exported(library):
    # The simulator's library has CUDA's runtime, by C++ names, and more for programs.
    own = {
        name
        for name in library.defines
        if not re.match(r"_Z\d+cuda[A-Z]|dt_program_", name)
    }
    assert own in (
        {"PyInit__C"},
        {"dt_backend_open", "dt_memory_open"},
        {"dt_backend_open", "dt_memory_open", "dt_sim_control"},
    )
    assert "dt_sim_control" in own or own == library.defines
