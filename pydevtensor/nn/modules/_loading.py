"""Loading a state into a tree of modules: first what fits, then the copies."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any


class IncompatibleKeys(tuple[list[str], list[str]]):
    """The result of load_state_dict(): lists of missing_keys and unexpected_keys."""

    def __new__(cls, missing: list[str], unexpected: list[str]) -> IncompatibleKeys:
        return super().__new__(cls, (missing, unexpected))

    @property
    def missing_keys(self) -> list[str]:
        """The paths that are in the module only."""
        return self[0]

    @property
    def unexpected_keys(self) -> list[str]:
        """The paths that are in the state only."""
        return self[1]

    def __repr__(self) -> str:
        if not any(self):
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self[0]}, unexpected_keys={self[1]})"


IncompatibleKeys.__name__ = IncompatibleKeys.__qualname__ = "_IncompatibleKeys"


class Loading:
    """The entries of a state dict for a tree of modules, and the mismatches."""

    def __init__(self, state: Any, assign: bool) -> None:
        self.metadata = getattr(state, "_metadata", None) or {}
        given: Any = OrderedDict(state.items())
        given._metadata = self.metadata
        self.given = given
        self.assign = assign
        self.missing: list[str] = []
        self.unexpected: list[str] = []
        self.faults: list[str] = []
        self.known: set[str] = set()
        self.steps: list[Callable[[], Any]] = []

    def local(self, path: str) -> dict[Any, Any]:
        """The metadata of a module, for its hooks."""
        found = dict(self.metadata.get(path, {}))
        if self.assign:
            found["assign_to_params_buffers"] = True
        return found

    def plan(self, module: Any, path: str) -> None:
        """Collect the steps that load a module, not those below it."""
        prefix = f"{path}." if path else ""
        rest = (True, self.missing, self.unexpected, self.faults)
        run_pre_hooks(module, (self.given, prefix, self.local(path), *rest))
        for key, step in module._loading(self.given, prefix, self.assign):
            self.known.add(key)
            if step is None:
                self.missing.append(key)
            elif isinstance(step, str):
                self.faults.append(step)
            else:
                self.steps.append(step)

    def load_its_way(self, module: Any, path: str) -> None:
        """Let a class load itself that overrides _load_from_state_dict()."""
        prefix = f"{path}." if path else ""
        rest = (True, self.missing, self.unexpected, self.faults)
        module._load_from_state_dict(self.given, prefix, self.local(path), *rest)
        self.known.update(own_keys(module, self.given, prefix))

    def find_unexpected(self) -> None:
        """Add the keys that no module knows."""
        rest = [key for key in self.given if key not in self.known]
        self.unexpected[:] = dict.fromkeys([*self.unexpected, *rest])

    def check(self, name: str, strict: bool) -> None:
        """Raise RuntimeError, which lists all that does not fit."""
        faults = [*self.faults]
        for which, keys in (("Unexpected", self.unexpected), ("Missing", self.missing)):
            if strict and keys:
                names = ", ".join(f'"{key}"' for key in keys)
                faults.insert(0, f"{which} key(s) in state_dict: {names}")
        if faults:
            raise RuntimeError(
                f"Error(s) in loading state_dict for {name}:\n\t"
                + ".\n\t".join(faults)
                + "."
            )


def run_pre_hooks(module: Any, arguments: tuple[Any, ...]) -> None:
    options = module._options_of_hooks
    for key, hook in [*module._load_state_dict_pre_hooks.items()]:
        alone, _ = options.get(key, (False, False))
        hook(*(arguments if alone else (module, *arguments)))


def own_keys(module: Any, given: Any, prefix: str) -> list[str]:
    """The keys below prefix that belong to no child of the module."""
    return [
        key
        for key in given
        if key.startswith(prefix)
        and key[len(prefix) :].partition(".")[0] not in module._modules
    ]
