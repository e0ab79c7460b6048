"""Leaves out safeguards of the library's kernels, one at a time, and asks whether
`make kernel-check` finds that.

python -P tools/kernel_check --mutate NUMBER [--seed SEED] [--only FILE[:LINE],...]
    [--families NAME,...]

Candidates are found by pattern in the code of devices: barriers, waits, atomics, tests
of bounds, and the ends of loops. A seed chooses among them, of every file some. The
kernels are compiled once, with a question at each of these places. All families run
without a mutant first: each has to pass, and it is noted which places it reaches. Then,
for each place, the families that reach it run with the answer yes there. One of them
has to report that, by the checks or by a wrong result, unless equivalent.toml says why
the mutant does the same as the kernel. With --families, only these run.
"""

from __future__ import annotations

import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from families import CASES

import build
from build import ROOT

KERNELS = ROOT / "csrc/cuda/kernels"
MUTANT = ROOT / "build" / "kernel-check-mutant"
EQUIVALENT = ROOT / "tools/kernel_check/equivalent.toml"
HELPERS = """
#pragma once
#include <cuda_runtime.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
/* A byte for each mutation, in the file that KERNEL_REACHED names: 1 if reached. */
inline char *mutant_places()
{
    const char *path = getenv("KERNEL_REACHED");
    const int file = path ? open(path, O_RDWR) : -1;
    if (file < 0)
        return nullptr;
    void *at = mmap(nullptr, lseek(file, 0, SEEK_END), PROT_READ | PROT_WRITE,
                    MAP_SHARED, file, 0);
    return at == MAP_FAILED ? nullptr : (char *)at;
}
__attribute__((noinline, no_sanitize("thread"))) inline int mutant(int number)
{
    static const char *text = getenv("KERNEL_MUTANT");
    static const int chosen = text ? atoi(text) : -1;
    static char *places = mutant_places();
    if (places)
        places[number] = 1;
    return number == chosen;
}
template <class T, class V>
inline T mutant_add(int number, T *at, V value)
{
    if (!mutant(number))
        return atomicAdd(at, (T)value);
    T old = *at;
    *at = (T)(old + value);
    return old;
}
template <class T, class V, class W>
inline T mutant_swap(int number, T *at, V compare, W value)
{
    if (!mutant(number))
        return atomicCAS(at, (T)compare, (T)value);
    T old = *at;
    if (old == (T)compare)
        *at = (T)value;
    return old;
}
"""
# What is looked for, and what stands there instead: @ is the question, # its number.
# Safeguards of memory that threads share come first.
SHARED = {
    "barrier": (r"(__syncthreads\(\));", r"@ ? (void)0 : \1;"),
    "barrier of some": (
        r"(?<![\w.:])((?:[\w.]+\.|::)?(?:meet|pass)\([^;{}]*\));",
        r"@ ? (void)0 : \1;",
    ),
    "warp barrier": (r"(__syncwarp\([^;]*\));", r"@ ? (void)0 : \1;"),
    "wait": (
        r"(?m)(?<=^)(\s*)([\w.]+\.(?:template )?await(?:<\w+>)?\([^;]*\));",
        r"\1@ ? (void)0 : (void)(\2);",
    ),
    "atomic": (r"\batomicAdd\(", "mutant_add(#, "),
    "compare and swap": (r"\batomicCAS\(", "mutant_swap(#, "),
}
BOUNDS = {
    "bounds": (r"\bif \(([^()]* >= [^()]*)\)(?=\s+return)", r"if (!@ && (\1))"),
    "bound of an if": (r"\bif \((\w[^()&|]* < [^()&|]*)\)", r"if (@ || (\1))"),
    "bound of a choice": (r"= (\w+ < \w[\w.]*) \?", r"= (@ || (\1)) ?"),
    "end of a loop": (r"(for \([^;]*;[^;]*\w <)( [^;=]*;)", r"\1 @ +\2"),
}
MISSED = ("SURVIVED", "NOT REACHED")
SECONDS = 120  # of the processor, for a family
# The .cu files that a header is compiled into.
HOSTS = {
    "async_copy.h": "attention_halves attention_floats",
    "attention.h": "attention",
    "attention_dropout.h": "attention attention_dropout",
    "attention_mma.h": "attention_halves attention_floats",
    "attention_tensor_cores.h": "attention_halves",
    "attention_tiles.h": "attention_halves attention_floats",
    "attention_warpgroups.h": "attention_warpgroups attention_warpgroups_backward",
    "chain_machine.h": "chain chain_end chain_wide",
    "chain_memory.h": "chain chain_end chain_wide",
    "compute.h": "depthwise",
    "depthwise.h": "depthwise",
    "device_functions.h": "reduce",
    "elementwise_kernels.h": "elementwise_integer",
    "layout.h": "elementwise_integer reduce",
    "load_rounds.h": "reduce",
    "mma.h": "attention_halves attention_floats",
    "moments.h": "moments",
    "nn_elements.h": "nn_softmax",
    "nn_kernels.h": "nn_softmax nn_norm",
    "pack.h": "convert",
    "pack_access.h": "index",
    "radix.h": "sort",
    "reduce_kernels.h": "reduce",
    "rnn.h": "rnn rnn_float64",
    "row_offsets.h": "moments",
    "stored_pack.h": "nn_softmax",
    "tensor_table.h": "optim",
    "warp.h": "scan nn_softmax",
    "warpgroup.h": "attention_warpgroups",
    "window.h": "pooling",
}
# The family that is for each file's kernels: its run is the first.
HOPPER = "attention_of_halves on h100"
FAMILIES = {
    "arange": "creating",
    "argreduce": "extremes",
    "attention": "attention",
    "attention_dropout": "attention_with_dropout",
    "attention_floats": "attention",
    "attention_halves": "attention_of_halves",
    "attention_warpgroups": HOPPER,
    "attention_warpgroups_backward": HOPPER,
    "chain": "chains",
    "chain_end": "ends_of_chains",
    "chain_wide": "wide_chains",
    "convert": "converting",
    "convolution": "convolving",
    "depthwise": "convolving",
    "elementwise_complex": "elementwise",
    "elementwise_float32": "elementwise",
    "elementwise_float64": "elementwise",
    "elementwise_integer": "elementwise",
    "elementwise_special": "elementwise",
    "foreach_norm": "norms_of_lists",
    "index": "indexing",
    "index_ordered": "indexing_in_order",
    "lapack_finite": "products",
    "matmul_integers": "products",
    "moments": "moments",
    "nn_columns": "norms",
    "nn_loss": "losses",
    "nn_loss_soft": "losses",
    "nn_norm": "norms",
    "nn_softmax": "softmax",
    "nonzero": "counting",
    "optim": "optimizing",
    "pooling": "pooling",
    "random": "random",
    "reduce": "reducing",
    "resample": "pooling",
    "rnn": "recurrent",
    "rnn_float64": "recurrent",
    "scan": "scanning",
    "sort": "sorting",
    "sparse": "sparse",
    "transpose": "transpose",
}


class Mutation(NamedTuple):
    file: str
    kind: str
    start: int
    end: int
    put: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line} | {self.kind} | {self.code()}"

    def code(self, more: int = 0) -> str:
        """The line, or the lines if it is in several; and so many before."""
        text = (KERNELS / self.file).read_text()
        begin = text.rindex("\n", 0, len(text[: self.end].rstrip())) + 1
        begin = min(begin, text.rindex("\n", 0, self.start + 1) + 1)
        for _ in range(more):
            begin = text.rindex("\n", 0, begin - 1) + 1
        end = text.find("\n", self.end)
        return " ".join(text[begin:end].split())

    def after(self) -> str:
        """The next line."""
        rest = (KERNELS / self.file).read_text()[self.end :].splitlines()[1:]
        return rest[0].strip() if rest else ""


def device_code(text: str) -> Iterator[tuple[int, int]]:
    """Where the bodies of functions of the device are."""
    for head in re.finditer(r"\b(?:__global__|__device__|DT_FN)\b[^;{}#]*\{", text):
        depth, at = 1, head.end()
        while depth and at < len(text):
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            at += 1
        yield head.end(), at


def candidates() -> list[Mutation]:
    found = []
    for path in sorted(KERNELS.glob("*")):
        if path.suffix not in (".cu", ".h"):
            continue
        text = path.read_text()
        spans = [*device_code(text)]
        for kind, (pattern, put) in {**SHARED, **BOUNDS}.items():
            for match in re.finditer(pattern, text):
                if any(a <= match.start() < b for a, b in spans):
                    line = text.count("\n", 0, match.end()) + 1
                    place = (*match.span(), match.expand(put), line)
                    found.append(Mutation(path.name, kind, *place))
    return found


def choose(number: int, seed: int, only: str | None) -> list[Mutation]:
    """From all files in turn, safeguards of shared memory first."""
    dice = random.Random(seed)
    files: dict[str, list[Mutation]] = {}
    wanted = only.split(",") if only else []
    for each in candidates():
        if not wanted or {each.file, f"{each.file}:{each.line}"} & {*wanted}:
            files.setdefault(each.file, []).append(each)
    for listed in files.values():
        dice.shuffle(listed)
        listed.sort(key=lambda each: each.kind in SHARED)
    names = sorted(files)
    dice.shuffle(names)
    chosen: list[Mutation] = []
    while len(chosen) < number and any(files.values()):
        chosen += [files[name].pop() for name in names if files[name]]
    return chosen[:number]


def hosts_of(file: str) -> list[str]:
    return HOSTS.get(file, file.removesuffix(".cu")).split()


def write_sources(chosen: list[Mutation]) -> None:
    """Writes the kernels' sources, with a switch for each chosen mutation."""
    folder = MUTANT / "csrc/cuda/kernels"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "mutant.h").write_text(HELPERS)
    for name in {each.file for each in chosen}:
        text = (KERNELS / name).read_text()
        places = [(each, n) for n, each in enumerate(chosen) if each.file == name]
        for each, n in sorted(places, key=lambda pair: -pair[0].start):
            put = each.put.replace("@", f"mutant({n})").replace("#", str(n))
            text = text[: each.start] + put + text[each.end :]
        at = text.index("#include")  # lines stay
        line = f"#line {text.count(chr(10), 0, at) + 1}"
        text = f'{text[:at]}#include "cuda/kernels/mutant.h"\n{line}\n{text[at:]}'
        (folder / name).write_text(text)


def compiled(product: Any, chosen: list[Mutation], wanted: set[str]) -> None:
    """Puts the library with the questions into the package; wanted: the families."""
    objects = {unit.source: str(unit.path) for unit in product.objects}
    for host in sorted({host for each in chosen for host in hosts_of(each.file)}):
        own = {name for name in wanted if name in FAMILIES.values()}
        if own and FAMILIES[host] not in own:
            continue  # none of them is for this file's kernels
        source = f"csrc/cuda/kernels/{host}.cu"
        (unit,) = (u for u in product.objects if u.source == source)
        own = MUTANT / source
        objects[source] = str(MUTANT / f"{host}.o")
        print(f"c++ {host}.cu", flush=True)
        command = [unit.command[0], f"-I{MUTANT}/csrc", *unit.command[1:], "-w", "-c"]
        path = own if own.exists() else ROOT / source
        subprocess.run(
            [*command, str(path), "-o", objects[source]], cwd=ROOT, check=True
        )
    target = MUTANT / "package" / "pydevtensor" / "_cuda_sim.so"
    linked = [*product.command, *objects.values(), *product.libraries]
    subprocess.run([*linked, "-o", str(target)], cwd=ROOT, check=True)


def family(name: str, more: dict[str, str]) -> subprocess.CompletedProcess[str]:
    own = [sys.executable, "-P", str(ROOT / "tools/kernel_check/families.py")]
    name, _, card = name.partition(" on ")
    return subprocess.run(
        [*own, name, *(["--card", card] if card else [])],
        env={**build.environment(MUTANT / "package"), **more},
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS)),
        timeout=20 * SECONDS,
    )


def reach(number: int, names: list[str]) -> dict[str, set[int]]:
    """The places that each of these families reaches, the quickest family first."""
    place = MUTANT / "reached"
    reached: dict[str, set[int]] = {}
    seconds: dict[str, float] = {}
    for name in names:
        place.write_bytes(bytes(number))
        began = time.monotonic()
        done = family(name, {"KERNEL_REACHED": str(place)})
        seconds[name] = time.monotonic() - began
        print(f"{name}: {seconds[name]:.0f} s", flush=True)
        if done.returncode:
            raise SystemExit(f"without a mutant:\n{done.stdout}{done.stderr}")
        reached[name] = {n for n, byte in enumerate(place.read_bytes()) if byte}
    return {name: reached[name] for name in sorted(reached, key=seconds.__getitem__)}


def verdict(number: int, names: list[str]) -> str:
    for name in names:
        try:
            done = family(name, {"KERNEL_MUTANT": str(number)})
        except subprocess.TimeoutExpired:
            return "found: it does not end"
        if not done.returncode:
            continue
        if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
            return "found: it does not end"
        words = re.search(
            r": ((?:race|out of bounds|misaligned|null pointer|wrong memory|"
            r"uninitialized|barrier|warp|waits?)\b[^\n]*)",
            done.stdout,
        )
        if words:
            return "found by the checks: " + words[1]
        if "result " in done.stdout:
            return "found: a wrong result"
        last = (done.stdout + done.stderr).strip().splitlines()[-1:]
        return "found: an error, " + "".join(last or [f"status {done.returncode}"])[:99]
    return "SURVIVED"


def equivalents() -> list[dict[str, str]]:
    """Mutants that do the same as the kernel, with a reason."""
    listed: list[dict[str, str]] = tomllib.loads(EQUIVALENT.read_text()).get(
        "mutant", []
    )
    return listed


def reason(mutation: Mutation) -> str:
    code = mutation.code(more=1)
    for each in equivalents():
        same = (each["file"], each["kind"]) == mutation[:2]
        same = same and each.get("next", mutation.after()) == mutation.after()
        if same and code.endswith(each["code"]):
            return each["reason"]
    return ""


def run(number: int, seed: int, only: str | None, families: str | None) -> int:
    build.package(build.library(), MUTANT / "package")
    chosen = choose(number, seed, only)
    print(f"{len(chosen)} of {len(candidates())} candidates, seed {seed}")
    write_sources(chosen)
    wanted = {*families.split(",")} if families else set()
    compiled(build.product(), chosen, wanted)
    # Families of these files first; the others where those do not suffice.
    own = {FAMILIES[host] for each in chosen for host in hosts_of(each.file)}
    every = [name for name in (*CASES, HOPPER) if not wanted or name in wanted]
    answers = ["NOT REACHED"] * len(chosen)
    for names in ([n for n in every if n in own], [n for n in every if n not in own]):
        left = [n for n, answer in enumerate(answers) if names and answer in MISSED]
        left = [n for n in left if names[0] in own or not reason(chosen[n])]
        reached = reach(len(chosen), names) if left else {}
        for n in left:
            if ran := [name for name in reached if n in reached[name]]:
                answers[n] = verdict(n, ran)
                print(f"{chosen[n]} | {answers[n]}", flush=True)
    counts: Counter[str] = Counter()
    for mutation, answer in zip(chosen, answers, strict=True):
        if why := reason(mutation):
            missed = answer in MISSED
            answer = "equivalent" if missed else f"LISTED AS EQUIVALENT, but {answer}"
            print(f"{mutation} | {answer}: {why}")
        elif answer in MISSED:
            print(f"{mutation} | {answer}")
        counts[re.split("[:,]| by", answer)[0]] += 1
    print(", ".join(f"{n} {answer}" for answer, n in counts.most_common()))
    return any(answer.isupper() for answer in counts)
