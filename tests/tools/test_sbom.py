"""The bill of materials beside the installed package."""

import hashlib
import json
import sys
from importlib.metadata import distribution
from pathlib import Path

import pydevtensor

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "build"))

import elf  # noqa: E402

LIBRARIES = sorted(Path(pydevtensor.__file__).parent.glob("*.so"))


def test_bill_of_materials():
    installed = distribution("pydevtensor")
    (path,) = (f for f in installed.files if f.parts[1:2] == ("sboms",))
    assert path.parts[0].endswith(".dist-info") and path.name.endswith(".cdx.json")
    bill = json.loads(path.read_text())
    assert bill["bomFormat"] == "CycloneDX" and bill["specVersion"] == "1.6"
    own = bill["metadata"]["component"]
    assert own["name"] == "pydevtensor" and own["version"] == pydevtensor.__version__
    assert own["licenses"] == [{"expression": "MIT"}]
    parts = {row["bom-ref"]: row for row in bill["components"]}
    needs = {row["ref"]: row.get("dependsOn", []) for row in bill["dependencies"]}
    assert len(parts) == len(bill["components"]) and needs.keys() == {
        own["bom-ref"],
        *parts,
    }
    for file in LIBRARIES:
        ref = f"file:{file.name}"
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        assert parts[ref]["hashes"] == [{"alg": "SHA-256", "content": digest}]
        assert ref in needs[own["bom-ref"]]
        needed = {f"system:{name}" for name in elf.Library(file).needed}
        assert needed == {r for r in needs[ref] if r.startswith("system:")}
    assert needs["file:_cuda_sim.so"].count("linked:libstdc++") <= 1
    # What METADATA requires, and no more.
    required = {
        requirement["value"]: row["scope"]
        for row in bill["components"]
        if row["bom-ref"].startswith("pypi:")
        for requirement in row["properties"]
    }
    wanted = [
        text
        for text in installed.requires
        if not any(f'extra == "{extra}"' in text for extra in ("test", "notebook"))
    ]
    assert sorted(required) == sorted(wanted)
    for text, scope in required.items():
        assert scope == ("optional" if "extra" in text else "required")
