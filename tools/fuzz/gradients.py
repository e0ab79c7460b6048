"""Random programs about gradients: views, in-place writes, hooks, and derivatives with
respect to some of the tensors; and a machine that checks them without PyTorch."""

from __future__ import annotations

import re

import numpy as np

from .generate import Generator
from .machines import NAME, Ours, Value

SMOOTH = ("sin", "tanh", "sigmoid", "cos", "neg")
# The leaves, and the passes whose results are compared.
LEAF = re.compile(r"(t\d+) = torch\.tensor\(.*requires_grad=True\)$")
PASS = re.compile(r"(t\d+) = torch\.autograd\.grad\((.*), \[(.*?)\], ")
# What makes gradients others than derivatives of the values.
APART = re.compile(r"no_grad|t\d+(\[\d+\])?\.detach|g \* 3")

# Programs that PyTorch refuses, since it does not know what they mean; here a view is a
# view, however it was taken.
REFUSED = re.compile(
    "A view was created in no_grad|view which was created in no_grad|"
    "returns multiple views|refer to a single memory location|INTERNAL ASSERT"
)
STRICT = re.compile("share memory|exceeds the storage")


def is_known(session, machine, statement, ours, theirs):
    """Whether a difference from PyTorch is meant."""
    if ours is None and "a leaf Variable that requires grad" in str(theirs):
        # PyTorch does not look whether a base was written since its view was taken.
        return not session.leader.namespace[NAME.search(statement)[0]].is_leaf
    if "inputs=" in statement and "modified by an inplace" in str(theirs):
        return True  # PyTorch also runs the nodes of the inputs, for nothing
    if ours is None:
        return bool(REFUSED.search(str(theirs)))
    return theirs is None and bool(STRICT.search(str(ours)))


class Checks(Ours):
    """Compares autograd.grad() with backward() and, where the program computes smooth
    functions of its leaves, with finite differences of the program."""

    records = False
    floor = 3e-9
    step = 2e-3

    def __init__(self):
        super().__init__("cpu")

    def clear(self):
        super().clear()
        self.played, self.expected = [], {}

    def prepare(self, statement, leader):
        self.statement, self.leader = statement, leader

    def run(self, code):
        error = super().run(code)
        if error is None and (found := PASS.match(self.statement)):
            name, total, inputs = found.groups()
            self.expected[name] = self.gradients(name, total, inputs.split(", "))
        self.played.append((self.statement, code))
        return error

    def read(self, name):
        return self.expected[name] if name in self.expected else super().read(name)

    def again(self, leaf=None, at=0, step=0.0):
        """The program once more, one number of a leaf moved."""
        machine = Ours("cpu")
        for statement, code in self.played:
            machine.run(code)
            if leaf and statement.startswith(f"{leaf} = ") and LEAF.match(statement):
                machine.namespace[leaf].data.view(-1)[at] += step
        return machine

    def backward(self, total, leaves):
        machine = self.again()
        for name in leaves:
            machine.namespace[name].grad = None
        failed = machine.run(f"({total}).backward()")
        found = {name: machine.namespace[name].grad for name in leaves}
        machine.clear()
        return None if failed else found

    def slope(self, total, leaf, at):
        """The derivative of a total, by four points."""
        values = []
        for steps in (1, -1, 2, -2):
            machine = self.again(leaf, at, steps * self.step)
            values.append(eval(total, machine.namespace).item())
            machine.clear()
        near, far = values[0] - values[1], values[2] - values[3]
        return (8 * near - far) / (12 * self.step)

    def gradients(self, name, total, inputs):
        """What each gradient should be; None where there is nothing to compare with."""
        texts = [statement for statement, _ in self.played]
        leaves = [m[1] for m in map(LEAF.match, texts) if m and m[1] in inputs]
        found = dict(zip(inputs, self.leader.namespace[name], strict=True))
        passes = self.backward(total, leaves)
        expected = dict.fromkeys(inputs)
        # backward() may need what was overwritten, where a part of the graph does not.
        for leaf in leaves if passes else ():
            x = self.leader.namespace[leaf]
            value = passes[leaf]
            if not any(map(APART.search, texts)):
                slopes = [self.slope(total, leaf, at) for at in range(x.numel())]
                array = np.array(slopes).reshape(tuple(x.shape))
                expected[leaf] = Value(str(x.dtype), array, False)
                close = value is None or np.allclose(value.tolist(), array, 1e-6, 1e-6)
                if found[leaf] is None and close and np.allclose(array, 0, 0, 1e-6):
                    expected[leaf] = "None"
            else:
                expected[leaf] = self.look(value)
        return tuple(expected[n] for n in inputs)


class Gradients(Generator):
    """Writes programs over few small tensors. Half of them compute smooth functions of
    their leaves, which finite differences can check."""

    def __init__(self, seed, namespace, run, **options):
        super().__init__(seed, namespace, run, **options)
        self.smooth = self.flip()
        self.lists: list[str] = []
        self.handles: list[int] = []
        # Hooks changed their gradients, which PyTorch does before or after it returns
        # them, by whether it goes on from there.
        self.changed: set[str] = set()

    # --- tensors

    def leaf(self, wanted=True):
        shape = self.rng.choice(((2,), (3,), (4,), (2, 2), (2, 3), (3, 2), (2, 1, 2)))
        n = int(np.prod(shape))
        values = [self.rng.randrange(-8, 9) / 4 for _ in range(n)]
        array = np.reshape(values, shape).tolist()
        more = ", requires_grad=True" if wanted else ""
        return self.emit(f"torch.tensor({array}, dtype=torch.float64{more})")

    def pick(self, test=lambda x: True):
        """One of the tensors, the latest more often."""
        names = [n for n in self.names if test(self.value(n))]
        if not names:
            return None
        return self.rng.choice(names if self.flip(0.4) else names[-5:])

    def like(self, x):
        """What broadcasts to x: a number or a tensor of other memory."""
        mine = x.untyped_storage().data_ptr()
        names = [
            n
            for n in self.names
            if self.value(n).untyped_storage().data_ptr() != mine
            and self.value(n).shape in (x.shape, x.shape[1:], x.shape[:-1] + (1,))
        ]
        if names and self.flip(0.75):
            return self.rng.choice(names)
        return str(self.rng.choice((0.5, 2.0, -1.5, 0.25, 3.0)))

    def slices(self, x):
        parts = []
        for n in x.shape:
            kind = self.rng.randrange(6)
            if kind == 0 and n:
                parts.append(str(self.rng.randrange(-n, n)))
            elif kind == 1:
                parts.append("1:")
            elif kind == 2:
                parts.append(":-1" if n > 1 else ":1")
            elif kind == 3:
                parts.append("::2")
            elif kind == 4 and self.flip(0.3):
                parts.append("None, :")
            else:
                parts.append(":")
        while len(parts) > 1 and parts[-1] == ":" and self.flip():
            parts.pop()
        return ", ".join(parts) or "..."

    def view_of(self, name):
        """The text of a view."""
        x, rng = self.value(name), self.rng
        d = rng.randrange(-x.dim(), x.dim()) if x.dim() else 0
        texts = ["unsqueeze(0)", "squeeze()", f"view_as({name})", "unsqueeze(-1)"]
        if x.is_contiguous():
            texts += ["view(-1)", "flatten()"] if x.dim() > 1 else ["view(-1)"]
        if x.dim():
            n = x.shape[d]
            texts += [f"unbind({d})[0]", f"chunk(2, {d})[0]", f"transpose(0, {d})"]
            texts += [f"expand(2, *{name}.shape)", f"split(1, {d})[-1]"]
            if n > 1:
                texts += [f"narrow({d}, 1, {n - 1})", f"select({d}, {n - 1})"]
                texts += [f"unfold({d}, 2, {rng.choice((1, 2))})"]
            size, offset = max(1, x.numel() // 2), x.storage_offset()
            step = rng.choice((1, 1, 2))
            texts += [f"as_strided(({size},), ({step},), {offset})"]
            if rng.random() < 0.3:
                texts += [f"as_strided(({size}, 2), (1, 1), {offset})"]
        if x.dim() == 2:
            texts += ["t()", "diagonal()"]
        if not self.smooth and self.flip(0.2):
            texts = ["detach()"]
        if self.flip(0.6):
            return f"{name}[{self.slices(x)}]"
        return f"{name}.{rng.choice(texts)}"

    # --- statements

    def view(self):
        name = self.pick()
        text = self.view_of(name)
        if self.smooth or self.flip(0.9):
            return self.emit(text)
        self.count += 1
        target = f"t{self.count}"
        if self.run(f"with torch.no_grad(): {target} = {text}") is None:
            self.names.append(target)

    def compute(self):
        name = self.pick()
        x = self.value(name)
        kind = self.rng.randrange(6)
        if kind == 0:
            return self.emit(f"{name} * {self.like(x)}")
        if kind == 1:
            return self.emit(f"{name} + {self.like(x)}")
        if kind == 2:
            return self.emit(f"{name}.{self.rng.choice(SMOOTH)}()")
        if kind == 3:
            return self.emit(f"{name}.clone()")
        if kind == 4 and x.dim():
            return self.emit(f"torch.cat([{name}, {name}.{self.rng.choice(SMOOTH)}()])")
        return self.emit(f"{name} * {self.rng.choice((1, 0.5, 2))}")

    def write(self):
        name = self.pick(lambda x: not (x.is_leaf and x.requires_grad))
        if name is None:
            return
        x, rng = self.value(name), self.rng
        other = self.like(x)
        texts = [
            f"{name}.mul_({rng.choice((0.5, 2, -1))})",
            f"{name}.mul_({other})",
            f"{name}.add_({other})",
            f"{name}.{rng.choice(SMOOTH)}_()",
            f"{name}.zero_()",
            f"{name}.fill_({rng.choice((0.5, 2))})",
            f"{name}[{self.slices(x)}] = {rng.choice((0.5, 2))}",
            f"{name}[{self.slices(x)}] *= {rng.choice((0.5, 2))}",
            f"{name}.masked_fill_({name}.detach() > 0.3, 0.5)",
            f"{name} += {other}",
        ]
        if not other[-1].isdigit() or other.isidentifier():
            texts += [f"{name}.copy_({other})", f"{name}[...] = {other}"]
            texts += [f"{name}.addcmul_({other}, {other})"]
        if x.dim() and x.shape[0] > 1:
            texts += [f"{name}[:1] += {name}[-1:]", f"{name}[0] = {name}[1]"]
        if self.smooth:
            texts = [t for t in texts if "masked" not in t]
        text = rng.choice(texts)
        if not self.smooth and self.flip(0.12):
            text = f"with torch.no_grad(): {text}"
        self.run(text)

    def reshape(self):
        """A change of the shape in place."""
        name = self.pick(lambda x: not (x.is_leaf and x.requires_grad))
        if name is None:
            return
        x = self.value(name)
        texts = ["unsqueeze_(0)", "squeeze_()", "unsqueeze_(-1)"]
        if x.dim():
            texts += [f"transpose_(0, {self.rng.randrange(x.dim())})"]
            size = max(1, x.numel() // 2)
            texts += [f"as_strided_(({size},), (1,))"]
        if x.dim() == 2:
            texts += ["t_()"]
        self.run(f"{name}.{self.rng.choice(texts)}")

    def hook(self):
        # PyTorch crashes where a view was taken under no_grad().
        name = self.pick(lambda x: x.grad_fn)
        if name is None:
            return
        kind = self.rng.randrange(4)
        if kind == 0:
            self.run(f"{name}.retain_grad()")
        elif kind == 1 and self.handles:
            at = self.rng.randrange(len(self.handles))
            self.run(f"r0[{self.handles.pop(at)}].remove()")
        elif kind == 2 and not self.smooth:
            self.changed.add(name)
            self.run(f"{name}.grad_fn; {name}.register_hook(lambda g: g * 3)")
        else:
            self.count += 1
            kept = f"r{self.count}"
            if "r0" not in self.namespace:
                self.run("r0 = []")
            self.run(f"{kept} = []")
            told = f"lambda g: {kept}.append(g.detach().clone())"
            # PyTorch crashes where the view is not looked at first.
            added = f"r0.append({name}.register_hook({told}))"
            if self.run(f"{name}.grad_fn; {added}") is None:
                self.lists.append(kept)
                self.handles.append(len(self.namespace["r0"]) - 1)

    def total(self):
        """The text of a number computed from some tensors that want gradients."""
        wanted = [n for n in self.names if self.value(n).requires_grad]
        if not wanted:
            return None
        chosen = self.rng.sample(
            wanted[-6:], min(len(wanted[-6:]), 1 + self.rng.randrange(3))
        )
        return " + ".join(
            f"({n} * {n}).sum()" if self.flip(0.3) else f"{n}.sum()" for n in chosen
        )

    def differentiate(self):
        total = self.total()
        if total is None:
            return
        wanted = [n for n in self.names if self.value(n).requires_grad]
        leaves = [n for n in wanted if self.value(n).is_leaf]
        wanted = [n for n in wanted if n not in self.changed]
        some = self.rng.sample(wanted, min(len(wanted), 1 + self.rng.randrange(3)))
        inputs = ", ".join(dict.fromkeys([*leaves, *some] if self.flip(0.7) else some))
        if self.flip(0.7):
            create = ", create_graph=True" if self.flip(0.3) else ""
            self.count += 1
            made = f"t{self.count}"
            self.run(
                f"{made} = torch.autograd.grad({total}, [{inputs}], "
                f"allow_unused=True, retain_graph=True{create})"
            )
            found = self.namespace.get(made) or ()
            at = self.rng.randrange(len(found) or 1)
            if found and found[at] is not None and (create or not self.smooth):
                # A copy: strides of gradients differ.
                apart = "" if create else ".detach()"
                self.emit(f"{made}[{at}]{apart} * 1")
        else:
            only = f", inputs=[{inputs}]" if self.flip() else ""
            self.run(f"({total}).backward(retain_graph=True{only})")
            for name in wanted:
                self.count += 1
                self.run(f"t{self.count} = {name}.grad")
        for kept in self.lists:
            self.count += 1
            self.run(f"t{self.count} = [*{kept}]")

    def step(self):
        if not self.names:
            self.leaf()
            self.compute()
            return
        kinds = (
            *((self.view, 6), (self.compute, 3), (self.write, 6), (self.hook, 1)),
            *((self.differentiate, 2), (self.leaf, 1), (self.reshape, 0.5)),
            (lambda: self.leaf(False), 0.7),
        )
        steps, weights = zip(*kinds, strict=True)
        self.rng.choices(steps, weights)[0]()
