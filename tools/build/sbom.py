"""The wheel's bill of materials, in CycloneDX: what it holds, and what that needs."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from email.message import Message
from pathlib import Path
from typing import Any

import elf

# What is linked into a library, by the name that products.py gives it.
LICENSES = {
    "libstdc++": {"expression": "GPL-3.0-or-later WITH GCC-exception-3.1"},
    "cudart_static": {"license": {"name": "NVIDIA CUDA Toolkit EULA"}},
}


def _requirement(text: str) -> dict[str, Any]:
    name = re.match(r"[\w.-]+", text)
    assert name, text
    word = name[0].lower()
    return {
        "type": "library",
        "bom-ref": f"pypi:{word}",
        "name": word,
        "purl": f"pkg:pypi/{word}",
        "scope": "optional" if "extra ==" in text else "required",
        "properties": [{"name": "requirement", "value": text}],
    }


def bill(
    metadata: Message,
    libraries: Mapping[str, Path],
    linked: Mapping[str, Mapping[str, str]],
) -> dict[str, Any]:
    """metadata: the project's, as in METADATA. libraries: files by name. linked: for
    a library's name, name and version of what is linked into it statically."""
    name, version = metadata["Name"], metadata["Version"]
    own = f"pkg:pypi/{name}@{version}"
    components: dict[str, dict[str, Any]] = {}
    needs: dict[str, list[str]] = {own: []}

    def add(component: dict[str, Any], user: str) -> str:
        ref = str(component["bom-ref"])
        components.setdefault(ref, component)
        needs.setdefault(ref, [])
        if ref not in needs[user]:
            needs[user].append(ref)
        return ref

    for file, path in sorted(libraries.items()):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        ref = add(
            {
                "type": "file",
                "bom-ref": f"file:{file}",
                "name": f"{name}/{file}",
                "hashes": [{"alg": "SHA-256", "content": digest}],
            },
            own,
        )
        if not file.endswith(".so"):
            continue
        for part, number in linked.get(file, {}).items():
            row: dict[str, Any] = {"type": "library", "bom-ref": f"linked:{part}"}
            row |= {"name": part, "licenses": [LICENSES[part]]}
            add(row | ({"version": number} if number else {}), ref)
        for word in elf.Library(path).needed:
            row = {"type": "library", "bom-ref": f"system:{word}", "name": word}
            add(row | {"scope": "excluded"}, ref)
    requirements: Iterable[str] = metadata.get_all("Requires-Dist", [])
    for text in requirements:
        if not re.search(r"""extra == ["'](test|notebook)""", text):
            row = _requirement(text)
            known = components.get(row["bom-ref"])
            if known:  # another extra needs it too
                known["properties"] += row["properties"]
            else:
                add(row, own)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "lifecycles": [{"phase": "build"}],
            "component": {
                "type": "library",
                "bom-ref": own,
                "name": name,
                "version": version,
                "purl": own,
                "licenses": [{"expression": metadata["License-Expression"]}],
            },
        },
        "components": list(components.values()),
        "dependencies": [
            {"ref": ref, **({"dependsOn": refs} if refs else {})}
            for ref, refs in needs.items()
        ],
    }
