"""utils.data (data sets and loaders) and utils.dlpack."""

_MODULES = ("data", "dlpack")


def __getattr__(name):
    if name in _MODULES:
        from importlib import import_module

        return import_module("pydevtensor.utils." + name)
    raise AttributeError(
        f"pydevtensor.utils has no {name!r}; dir(pydevtensor.utils) lists what there is"
    )


def __dir__():
    return sorted({*globals(), *_MODULES})
