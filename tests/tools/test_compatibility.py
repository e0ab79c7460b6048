"""docs/compatibility.md is what the tool finds."""

import compatibility
import pytest

import pydevtensor as torch
from pydevtensor._stand_ins import is_module, is_stand_in, table

TEXT = compatibility.PAGE.read_text(encoding="utf-8")


def test_the_page_is_up_to_date():
    assert compatibility.page() == TEXT, "make docs"


def rows(title):
    section = TEXT.partition(f"## {title}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    cells = ([cell.strip() for cell in line.split("|")[1:-1]] for line in lines)
    return {row[0].strip("`"): row[1:] for row in cells}


def test_rows_say_what_is_there():
    there = rows("Modules that are there")
    assert "`DistributedDataParallelCPU`" in there["torch.nn.parallel"][2]
    names, differs, absent = there["torch"]
    assert "fuses chains" in differs and "`quantize_per_tensor`" in absent
    count, of = map(int, names.split(" of "))
    assert 600 < count < of == sum("." not in name for name in table()[""])
    assert "torch.nn.init" not in there and "`torch.nn.init`" in TEXT


def test_stand_ins_say_what_to_do_instead():
    absent = rows("Modules that are stand-ins")
    assert "state_dict()" in absent["torch.export"][2]
    assert "`datapipes`" in absent["torch.utils.data"][0]


def test_libraries_that_were_tried():
    section = TEXT.partition("## Libraries that were tried\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    found = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines[1:]]
    assert found == compatibility.rows()


def test_every_module_has_a_place():
    absent = rows("Modules that are stand-ins")
    for path in filter(is_module, table()):
        top = path.partition(".")[0]
        named = f"`torch.{path}`".replace(".`", "`") in TEXT
        # A package may have modules alone.
        assert named or f"torch.{top}" in absent or not table()[path], path


@pytest.mark.parametrize("name", sorted(compatibility.DIFFERS))
def test_what_differs_is_there(name):
    module = torch
    for part in filter(None, name.split(".")):
        module = getattr(module, part)
    assert not is_stand_in(module)
