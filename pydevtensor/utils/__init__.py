"""Helpers around tensors: utils.data, which brings data sets in batches."""


def __getattr__(name):
    if name == "data":
        from importlib import import_module

        return import_module("pydevtensor.utils.data")
    raise AttributeError(
        f"pydevtensor.utils has no {name!r}; dir(pydevtensor.utils) lists what there is"
    )


def __dir__():
    return sorted({*globals(), "data"})
