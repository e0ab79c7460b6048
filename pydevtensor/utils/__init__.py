"""utils.data (data sets and loaders), utils.checkpoint and utils.dlpack."""

_MODULES = ("checkpoint", "data", "dlpack")


def __getattr__(name):
    if name in _MODULES:
        from importlib import import_module

        return import_module("pydevtensor.utils." + name)
    from pydevtensor._absent import absent

    raise AttributeError(absent(__name__, name))


def __dir__():
    return sorted({*globals(), *_MODULES})
