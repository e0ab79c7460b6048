"""Plays programs on several machines and compares them statement by statement."""

from __future__ import annotations

import re

from . import hostile
from .generate import Generator
from .machines import ALLOWED, NAME, Ours, difference

TARGET = re.compile(r"(\w+)(?:\[.*\])?(?: [-+*/%@&|^]*)?= ")
WRITES = re.compile(r"_\(|\bout=|^\w+\[.*\] = |^\w+ [-+*/%@&|^]+= |backward")


class Mismatch(Exception):
    """kind and call identify a failure while it is shrunk; detail is for people.
    device: where it shows, if that is not where the leader runs."""

    def __init__(self, kind, statement, detail, machine=None):
        super().__init__(f"{kind}: {statement}: {detail}")
        self.device = machine.device if isinstance(machine, Ours) else None
        found = re.search(r"(?:^| )t\w+\.(\w+)\(", statement)
        self.key = kind, found[1] if found else "[]"
        self.kind, self.statement, self.detail = kind, statement, detail


class Stop(Exception):
    """The program ends here: what follows has no one meaning."""


class Session:
    """One program: the leader is pydevtensor on the CPU, which the others follow."""

    def __init__(
        self, followers=(), devices=(), known=lambda *_: False, leader="cpu", trace=None
    ):
        self.leader = Ours(leader)
        self.trace = trace  # gets each statement before it runs
        self.followers = followers
        self.devices = devices
        self.known = known
        self.statements: list[str] = []
        self.errors: list[Exception | None] = []

    def step(self, statement):
        """Runs a statement everywhere; gives the leader's error."""
        try:
            code = compile(statement, "<program>", "exec")
        except SyntaxError as error:  # hostile values in odd places
            return error
        self.statements.append(statement)
        if self.trace:
            self.trace(self.statements)
        for machine in self.followers:
            machine.prepare(statement, self.leader)
        error = self.leader.run(code)
        self.errors.append(error)
        if error is not None:
            check_error(statement, error)
            self.leader.settle()
        for machine in self.followers:
            self.follow(machine, statement, code, error)
        if error is not None and WRITES.search(statement):
            raise Stop  # what it wrote before it failed is not defined
        return error

    def inputs(self, statement):
        names = dict.fromkeys(NAME.findall(statement))
        read = [n for n in names if n in self.leader.namespace]
        found = [self.leader.read(n) for n in read]
        # Those in a tuple count one by one.
        return [v for each in found for v in (each if type(each) is tuple else (each,))]

    def follow(self, machine, statement, code, error):
        theirs = machine.run(code)
        if error is not None:
            reported = machine.settle()
            theirs = theirs or reported
        if (error is None) != (theirs is None):
            if self.known(self, machine, statement, error, theirs):
                if machine.records:
                    raise Stop
                return
            raise disagreement(statement, error, theirs, machine)
        found = TARGET.match(statement)
        if error is not None or theirs is not None or not found:
            return
        name = found[1]
        try:
            ours, other = self.leader.read(name), machine.read(name)
        except RuntimeError as late:
            raise Mismatch("raises", statement, f"when read: {late!r}") from None
        except TypeError:  # a sparse gradient of PyTorch
            raise Stop from None
        told = difference(
            ours, other, lambda: self.inputs(statement), machine.records, machine.floor
        )
        if told is not None:
            if self.known(self, machine, statement, ours, other):
                if machine.records:
                    raise Stop
                return
            raise Mismatch(told[0], statement, told[1], machine)
        self.adopt(machine, name, ours, other)

    def adopt(self, machine, name, ours, other):
        if getattr(ours, "array", None) is None or not ours.array.size:
            return
        if (ours.array != other.array).any():
            try:
                machine.adopt(name, ours)
            except Exception:  # an expanded tensor
                raise Stop from None

    def finish(self):
        """Plays the program on the devices, at first without waiting for anything."""
        codes = [compile(s, "<program>", "exec") for s in self.statements]
        for device in self.devices:
            machine = Ours(device)
            try:
                self.alone(machine, codes)
            except Stop:
                pass
            except Mismatch as found:
                # Roundings may accumulate: only what differs in one step counts.
                again = Session([Ours(device)], (), self.known)
                for statement in self.statements:
                    try:
                        again.step(statement)
                    except Stop:
                        break
                again.leader.clear()
                if found.kind != "value":
                    raise
            finally:
                machine.clear()

    def alone(self, machine, codes):
        for statement, code, error in zip(
            self.statements, codes, self.errors, strict=True
        ):
            late = machine.settle() if error is not None else None
            theirs = late or machine.run(code)
            if error is not None:
                reported = machine.settle()
                theirs = theirs or reported
            if (error is None) != (theirs is None):
                if self.known(self, machine, statement, error, theirs):
                    raise Stop
                raise disagreement(statement, error, theirs, machine)
            if theirs is not None:
                check_error(statement, theirs)
                if WRITES.search(statement):
                    raise Stop
        if (late := machine.settle()) is not None:
            raise disagreement(self.statements[-1], None, late, machine)
        told = difference_of_ends(self, machine)
        if told is not None:
            raise told


def disagreement(statement, ours, theirs, machine):
    """The Mismatch where one of two machines raises."""
    told = [
        f"{type(e).__name__}: {e}"[:300] if e else "no error" for e in (ours, theirs)
    ]
    kind = "raises" if ours else "accepts"
    detail = f"{told[0]} / {told[1]} on {machine.device}"
    return Mismatch(kind, statement, detail, machine)


def difference_of_ends(session, machine):
    """The first variable in which a machine's end differs from the leader's."""
    for number, statement in enumerate(session.statements):
        found = TARGET.match(statement)
        if session.errors[number] is not None or not found:
            continue
        try:
            ours, other = session.leader.read(found[1]), machine.read(found[1])
        except RuntimeError as late:
            return disagreement(statement, None, late, machine)
        told = difference(ours, other, lambda s=statement: session.inputs(s))
        if told is not None:
            detail = f"{told[1]} on {machine.device}"
            return Mismatch(told[0], statement, detail, machine)
    return None


def check_error(statement, error):
    """An exception is of a kind that users are told of, and says something."""
    try:
        text = str(error)
    except hostile.Own:
        return
    if isinstance(error, MemoryError):
        return  # also what list() answers to a length that is none
    if not isinstance(error, ALLOWED):
        raise Mismatch(type(error).__name__, statement, repr(error))
    silent = not text and not isinstance(error, (AssertionError, hostile.Own))
    if silent or "without an error message" in text:
        raise Mismatch("message", statement, repr(error))


def generate(seed, session, length, spoils=False, writer=Generator):
    """Writes and plays a program; its statements are in the session afterwards."""
    namespace = session.leader.namespace
    generator = writer(seed, namespace, session.step, spoils=spoils)
    try:
        while len(session.statements) < length:
            generator.step()
    except Stop:
        pass
    session.finish()


def replay(statements, session):
    """The Mismatch of a program that was written before, or None."""
    try:
        for statement in statements:
            session.step(statement)
        session.finish()
    except Stop:
        try:
            session.finish()
        except Mismatch as found:
            return found
    except Mismatch as found:
        return found
    return None
