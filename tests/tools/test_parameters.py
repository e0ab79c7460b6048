"""Docstrings name the parameters of what they describe."""

import enum
import inspect
import re

import public_api

import pydevtensor.array_api
import pydevtensor.signal.windows
from pydevtensor import _records

# What an operation works on, and where it writes; the rest of the arguments.
KNOWN = {"self", "input", "other", "out", "args", "kwargs", "cls"}
# "In-place exp().", "Alias of div().": the other docstring says it.
ELSEWHERE = re.compile(r"^(In-place|Alias of|As|The same as) \S+")


def prose(doc):
    """A docstring without examples and the forms of a call."""
    doc = doc.partition("\nForms:\n")[0]
    lines = (line for line in doc.splitlines() if not re.match(r" *(>>>|\.\.\.)", line))
    return "\n".join(lines)


def parameters(value):
    """The names of what a call takes, as inspect shows them."""
    if isinstance(value, enum.EnumMeta):
        # A call finds a member; what makes new classes is Python's, by its version.
        return ["value"]
    if isinstance(value, property):
        return []  # read, not called, where it is a decorator too
    try:
        found = [*inspect.signature(value).parameters]
    except (ValueError, TypeError):
        return []
    forms = (inspect.getdoc(value) or "").partition("\nForms:\n")[2]
    found += re.findall(r"[(,] ?\*?([a-z]\w*)", forms)
    return [name for name in dict.fromkeys(found) if not name.startswith("_")]


def missing(value, shared=""):
    """The parameters that neither the docstring nor `shared` names."""
    doc = inspect.getdoc(value) or ""
    if ELSEWHERE.match(doc):
        return []
    words = set(re.findall(r"\w+", prose(doc) + shared))
    words |= {word.lower() for word in words}
    return [name for name in parameters(value) if name not in KNOWN | words]


def undescribed():
    """By public name, each parameter without a word in the docstring."""
    found, seen = {}, set()
    # Parameters that have one meaning in all functions of a module.
    shared = {
        "array_api": prose(inspect.getdoc(pydevtensor.array_api)),
        "distributed": prose(inspect.getdoc(pydevtensor.distributed)),
        "signal": prose(inspect.getdoc(pydevtensor.signal.windows)),
    }
    for name in public_api.all_names():
        value = public_api.resolve(name)
        if isinstance(value, staticmethod | classmethod):
            value = value.__func__
        last = name.rpartition(".")[2]
        if isinstance(value, enum.EnumType):  # whose parameters are Python's
            continue
        if not callable(value) or last.startswith("_") or not inspect.getdoc(value):
            continue
        key = (last, inspect.getdoc(value), *missing(value))
        if key in seen:
            continue
        seen.add(key)
        names = missing(value, shared.get(name.partition(".")[0], ""))
        if names:
            found[name] = names
    return found


def test_docstrings_name_their_parameters():
    assert not undescribed(), "say in the docstrings what these parameters are"


def test_no_docstring_refers_to_one_that_was_not_found():
    names = map(public_api.resolve, public_api.all_names())
    docs = [inspect.getdoc(value) or "" for value in names]
    assert not [doc for doc in docs if "Parameters: those of" in doc]


def test_a_docstring_has_the_parameters_of_another():
    class Base:
        """The base.

        scale, shift  what values are multiplied by, and
                      what is added
        """

        def __init__(self, scale, shift=0.0):
            pass

        def draw(self, n, seed=None):
            """Draw values.

            n     how many
            seed  where they begin
            """

        def mean(self, n):
            """The mean of some.

            Parameters: those of draw().
            """

    class Derived(Base):
        """Another.

        power  of the values

        >>> 1
        1
        """

        def __init__(self, scale, power):
            pass

    def shifted(input, by, *, wrap=False):
        """input, moved.

        by    how far
        wrap  what leaves one end enters at the other
        """

    def turned(input, by, axis, wrap=False):
        """input, turned.

        axis  what it turns about

        Parameters: those of shifted().

        >>> 2
        2
        """

    names = {"__name__": __name__, "__all__": ["Base", "Derived", "turned"]}
    names |= {"Base": Base, "Derived": Derived, "shifted": shifted, "turned": turned}
    _records.complete_docs(names)
    assert Derived.__doc__ == (
        "Another.\n\n"
        "scale  what values are multiplied by, and what is added\n"
        "power  of the values\n\n>>> 1\n1\n"
    )
    assert turned.__doc__ == (
        "input, turned.\n\n"
        "by    how far\n"
        "axis  what it turns about\n"
        "wrap  what leaves one end enters at the other\n\n>>> 2\n2\n"
    )
    assert Base.mean.__doc__ == "The mean of some.\n\nn  how many\n"
    assert missing(turned) == missing(Base.mean) == []


def test_parameters_of_every_form_are_found():
    def moved(input, by):
        """input, moved by a number.

        Forms:
            moved(input, by)
            moved(input, *steps, wrap=(1, 2), out=None)
        """

    assert missing(moved) == ["steps", "wrap"]


def test_a_parameter_without_a_word_is_found():
    def shifted(input, by, *, wrap=False):
        """input, moved.

        wrap: what leaves one end enters at the other.

        >>> shifted(1, by=2)
        """

    assert missing(shifted) == ["by"]
