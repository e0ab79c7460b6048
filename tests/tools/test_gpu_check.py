"""gpu-check's own logic, without a GPU: the steps' limits and evidence, what is kept of an
earlier run, missing tools, and that nothing passes on a simulator. Programs stand in for
nvidia-smi, compute-sanitizer and ncu.
"""

import dataclasses
import json
import os
import re
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import gpu_check
import pytest
from gpu import kernels, report, runner, steps
from gpu.runner import Place, Step

ROOT = Path(__file__).resolve().parents[2]
REAL = "echo 'ran on cuda:0 NVIDIA T4 (real)'"


def shell(name, code=REAL, piece=1, limit=20, **more):
    return Step(name, piece, limit, f"the step {name}", ("sh", "-c", code), **more)


MACHINE = shell("machine", "nvidia-smi -L", needs=(), evidence=None, always=True)


@pytest.fixture
def place(tmp_path):
    folders = tmp_path / "results", tmp_path / "work"
    for folder in folders:
        folder.mkdir()
    return Place(ROOT, *folders, "abc")


@pytest.fixture
def tools(tmp_path, monkeypatch):
    """A function that puts a program on PATH; at first there are no GPU's tools on it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("sh", "echo", "sleep", "setsid", "git"):
        found = next(
            Path(p, name)
            for p in os.environ["PATH"].split(":")
            if os.access(Path(p, name), os.X_OK)
        )
        (folder / name).symlink_to(found)

    def add(name, code):
        (folder / name).write_text(f"#!/bin/sh\n{code}\n")
        (folder / name).chmod(0o755)

    monkeypatch.setenv("PATH", str(folder))
    return add


@pytest.fixture
def a_gpu(tools):
    tools("nvidia-smi", "echo 'GPU 0: NVIDIA T4 (UUID: GPU-1)'")
    return tools


def check(place, *the_steps, more=()):
    """The exit status of a run over these steps, and what the report says."""
    status = gpu_check.main(
        ["--results", str(place.results), "--work", str(place.work), *more],
        the_steps,
    )
    return status, (place.results / "report.md").read_text()


def verdict(place, step):
    found = json.loads((place.results / f"{step}.json").read_text())
    return found["verdict"], found["why"]


# --- what passes


def test_all_steps_pass(place, a_gpu):
    status, said = check(place, MACHINE, shell("one"), shell("two", piece=2))
    assert status == 0
    assert said.startswith("# GPU check: passed: all 3 steps")
    assert "| two | 2 | the step two | passed |" in said
    assert "GPU 0: NVIDIA T4" in said and "ran on cuda:0 NVIDIA T4 (real)" in said
    assert re.search(r"Commit \w+.*, \d{4}-\d\d-\d\d \d\d:\d\d UTC", said)


@pytest.mark.parametrize(
    "code, why",
    [
        ("true", "its log does not say that it ran on a GPU"),
        ("echo 'ran on cuda:0 Simulated GPU (simulated)'", "it ran on a simulated GPU"),
        (
            f"{REAL}; echo 'ran on cuda:1 Simulated GPU (simulated)'",
            "it ran on a simulated GPU",
        ),
        (f"{REAL}; exit 3", "exit status 3"),
        ("kill -9 $$", "exit status -9"),
    ],
)
def test_what_does_not_pass(place, a_gpu, code, why):
    status, said = check(place, MACHINE, shell("one", code))
    assert status == 1 and verdict(place, "one") == ("failed", why)
    assert said.startswith("# GPU check: not passed: of 2 steps 1 passed, 1 failed")


def test_without_a_gpu_nothing_runs(place, tools):
    status, said = check(place, MACHINE, shell("one"))
    assert status == 1 and "nvidia-smi" in said
    assert verdict(place, "one") == ("not run", "machine has not passed")
    assert not (place.results / "one.log").exists()


def test_a_missing_tool_or_module(place, a_gpu):
    given = (
        MACHINE,
        shell("one", tool="compute-sanitizer"),
        shell("two", modules=("no_module_of_this_name",)),
        shell("three"),
    )
    status, said = check(place, *given)
    assert status == 1
    assert verdict(place, "one") == ("not run", "compute-sanitizer is not on PATH")
    assert verdict(place, "two")[1] == "Python has no module no_module_of_this_name"
    assert said.startswith(
        "# GPU check: not passed: of 4 steps 2 passed, 2 could not run"
    )
    a_gpu("compute-sanitizer", "exit 0")
    check(place, *given)
    assert verdict(place, "one") == ("passed", "")


def test_a_program_that_is_not_there(place, a_gpu):
    step = Step("one", 1, 20, "", ("/no/program",))
    assert check(place, MACHINE, step)[0] == 1
    assert (
        verdict(place, "one")[1]
        == "/no/program does not start: No such file or directory"
    )


# --- limits


def alive(pid):
    """Whether a process runs: a zombie, which nobody waits for here, does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.mark.slow
@pytest.mark.parametrize("wait", ["wait", "true"])
@pytest.mark.parametrize("how", ["", "setsid"])
def test_children_end_with_their_step(place, a_gpu, tmp_path, how, wait):
    """Past the limit, and where a program leaves some behind; also in other sessions."""
    code = f"{REAL}; {how} sleep 300 & echo $! >{tmp_path}/child; {wait}"
    check(place, MACHINE, shell("one", code, limit=0.3))
    expected = ("failed", "stopped after its limit of 0.3 s"), ("passed", "")
    assert verdict(place, "one") == expected[wait == "true"]
    child = int((tmp_path / "child").read_text())
    deadline = time.monotonic() + 20
    while alive(child) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not alive(child)
    # What it said until then is kept.
    assert "ran on" in (place.results / "one.log").read_text()


@pytest.mark.slow
def test_the_time_of_a_piece(place, a_gpu, monkeypatch):
    monkeypatch.setattr(runner, "LEAST", 0.3)
    given = MACHINE, shell("one", f"{REAL}; sleep 300", limit=400), shell("two")
    status, _ = check(place, *given, more=("--seconds", "0.6"))
    assert status == 1
    assert verdict(place, "one")[0] == "not run"
    assert re.match(
        r"stopped: only \d s of the piece were left", verdict(place, "one")[1]
    )
    assert verdict(place, "two") == ("not run", "the piece's time is over")
    # Neither counts as finished.
    check(place, MACHINE, shell("one"), shell("two"))
    assert verdict(place, "one") == verdict(place, "two") == ("passed", "")


def test_each_piece_takes_less_than_nine_minutes():
    for piece in (1, 2, 3, 4):
        assert 0 < sum(s.limit for s in steps.STEPS if s.piece == piece) < 540
    assert gpu_check.PIECE_SECONDS < 540


# --- several runs


def test_finished_steps_are_kept(place, a_gpu, tmp_path):
    count = f"echo x >>{tmp_path}/count; {REAL}"
    given = MACHINE, shell("one", count), shell("two", f"{count}; exit 1")
    for _ in range(2):
        assert check(place, *given)[0] == 1
    assert (tmp_path / "count").read_text().split() == ["x", "x"]
    check(place, *given, more=("--again", "--steps", "two"))
    assert (tmp_path / "count").read_text().split() == ["x"] * 3


def test_pieces_and_their_needs(place, a_gpu, tmp_path):
    made = tmp_path / "made"
    build = shell(
        "build", f"{REAL}; echo >{made}; echo x >>{made}.count", product=str(made)
    )
    given = (
        MACHINE,
        build,
        shell("one", piece=2, needs=("machine", "build")),
        shell("two"),
    )
    status, said = check(place, *given, more=("--piece", "2"))
    # The step passed, the whole has not.
    assert status == 0 and "not passed: of 4 steps 3 passed, 1 to do" in said
    assert not (place.results / "two.json").exists()
    # On another machine, what was built is not there.
    made.unlink()
    status, said = check(place, *given)
    assert status == 0 and "# GPU check: passed: all 4 steps" in said
    assert Path(f"{made}.count").read_text().split() == ["x", "x"]


def test_other_results_are_not_mixed_in(place, a_gpu):
    check(place, MACHINE, shell("one"))
    path = place.results / "one.json"
    path.write_text(path.read_text().replace('"commit": "', '"commit": "0'))
    with pytest.raises(SystemExit, match="has results of commit 0"):
        check(place, MACHINE, shell("one"))


def test_results_of_another_commit_can_be_kept(place, a_gpu):
    check(place, MACHINE, shell("one"))
    path = place.results / "one.json"
    path.write_text(path.read_text().replace('"commit": "', '"commit": "0'))
    status, said = check(place, MACHINE, shell("one"), more=("--accept-commit",))
    assert status == 0
    assert re.search(r"\| one \| 1 \| the step one \| passed \(commit 0", said)


# --- rehearsals


SIMULATED = "echo 'ran on cuda:0 Simulated GPU (simulated)'"


def test_a_rehearsal_is_no_pass(place, tools, capsys):
    """Without a GPU, or with one: no line could be taken for a check's."""
    machine = shell("machine", "true", needs=(), on_gpu=False)
    wrapped = shell(
        "two", SIMULATED, wrapper=("no-such-tool", "--with"), tool="no-such-tool"
    )
    given = machine, shell("one", "false", rehearsal=("sh", "-c", SIMULATED)), wrapped
    status, said = check(place, *given, more=("--rehearse",))
    assert status == gpu_check.REHEARSED != 0
    assert said.startswith(f"# {report.REHEARSAL}: of 3 steps 3 rehearsed\n")
    assert "passed" not in said
    printed = capsys.readouterr().out
    assert "passed" not in printed
    assert all("rehears" in line.lower() for line in printed.splitlines())
    rows = [
        line for line in said.splitlines() if re.match(r"\| (machine|one|two) ", line)
    ]
    assert len(rows) == 3 and all("| rehearsed |" in row for row in rows)
    # Its results are not those of a check, nor the other way round.
    with pytest.raises(SystemExit, match="has results of a rehearsal"):
        check(place, *given, more=("--accept-commit",))


def test_a_check_is_not_rehearsed_over(place, a_gpu):
    check(place, MACHINE, shell("one"))
    with pytest.raises(SystemExit, match="has results of a check"):
        check(place, MACHINE, shell("one"), more=("--rehearse", "--accept-commit"))


@pytest.mark.parametrize(
    "code, why",
    [
        ("true", "its log does not say that it ran on a GPU"),
        (REAL, "it ran on a real GPU"),
        (f"{SIMULATED}; exit 3", "exit status 3"),
    ],
)
def test_what_fails_in_a_rehearsal(place, tools, code, why):
    machine = shell("machine", "true", needs=(), on_gpu=False)
    status, said = check(place, machine, shell("one", code), more=("--rehearse",))
    assert status == 1 and verdict(place, "one") == ("failed in the rehearsal", why)
    assert said.startswith(f"# {report.REHEARSAL}: ")


@pytest.mark.slow
def test_a_rehearsal_of_short_steps(tmp_path):
    """The programs of gpu-check themselves, with the package of the tests."""
    place = Place(ROOT, tmp_path / "results", tmp_path / "work", "abc", True)
    place.results.mkdir()
    for step in steps.STEPS:
        if step.name in ("machine", "facts", "large", "profile"):
            words = runner.command_of(step, place)
            words = [
                sys.executable if word.endswith("/python") else word for word in words
            ]
            step = dataclasses.replace(step, rehearsal=words, needs=())
            runner.run(step, [step], place, 300)
            assert verdict(place, step.name) == ("rehearsed", ""), step.name


def test_an_unknown_step(place, capsys):
    with pytest.raises(SystemExit):
        check(place, MACHINE, more=("--steps", "machine,tset"))
    assert "there is no step tset" in capsys.readouterr().err


def test_the_archive_has_the_results(place, a_gpu, tmp_path):
    archive = tmp_path / "all.tar.gz"
    check(place, MACHINE, shell("one"), more=("--archive", str(archive)))
    with tarfile.open(archive) as file:
        names = set(file.getnames())
    assert {"results/report.md", "results/one.log", "results/one.json"} <= names


# --- the steps themselves


def test_no_step_keeps_choices_from_outside(place, monkeypatch):
    monkeypatch.setenv("PYDEVTENSOR_SIM_GPUS", "2")
    for step in steps.STEPS:
        kept = runner.environment(step, place)
        assert "PYDEVTENSOR_SIM_GPUS" not in kept and kept["PYTHONSAFEPATH"] == "1"
    names = {step.name: step for step in steps.STEPS}
    assert names["tests"].environment["PYDEVTENSOR_TEST_GPUS"] == "only"
    assert runner.environment(names["memcheck"], place)["PYDEVTENSOR_NO_CACHE"] == "1"


def test_every_step_shows_where_it_ran(place):
    building = {"build", "checker-build", "install"}
    for step in steps.STEPS:
        if step.name not in building:
            assert step.evidence(""), step.name
        assert all(need in [s.name for s in steps.STEPS] for need in step.needs)
        for word in step.command:
            path = place.fill(word)
            if path.startswith(f"{ROOT}/") and "work" not in word:
                assert os.path.exists(path), path


def test_the_steps_on_a_machine_that_only_looks_right(place, a_gpu):
    """nvidia-smi lists a GPU, and there is none: the programs of the steps find out."""
    work = place.work / "venv" / "bin"
    work.mkdir(parents=True)
    (work / "python").symlink_to(sys.executable)
    names = ("machine", "facts", "short", "large", "profile", "benchmarks", "tests")
    a_gpu("ncu", 'while [ "$1" != "${1#-}" ]; do shift 2; done; exec "$@"')
    python = sys.executable  # a link to it alone would lack the packages
    chosen = []
    for step in steps.STEPS:
        if step.name in names:
            command = [python if word == "{python}" else word for word in step.command]
            if step.name == "tests":
                command = [
                    python,
                    "-m",
                    "pytest",
                    "-q",
                    "-n",
                    "0",
                    "tests/test_cuda.py",
                ]
            chosen.append(
                Step(
                    **{
                        **step.__dict__,
                        "command": command,
                        "needs": ("machine",) if step.name != "machine" else (),
                    }
                )
            )
    assert gpu_check.main(
        ["--results", str(place.results), "--work", str(place.work)], chosen
    )
    assert verdict(place, "machine") == ("passed", "")
    seen = {name: verdict(place, name) for name in names[1:]}
    assert {each[0] for each in seen.values()} == {"failed"}, seen
    assert seen["facts"][1] == "exit status 1"
    assert seen["benchmarks"][1] == "its log does not say that it ran on a GPU"


CARD = "  cuda:0  NVIDIA T4  1 MiB used of 15.8 GiB  7.5  real"


OPENED = """
  cuBLAS            13.0.0
  cuBLAS is from    /lib/libcublas.so.13
  cuSOLVER          12.0.3
  cuSOLVER is from  /lib/libcusolver.so.12
"""


@pytest.mark.parametrize(
    "row, passes",
    [
        (CARD + OPENED, True),
        (CARD, False),
        (CARD + OPENED.replace("12.0.3", "not loaded yet"), False),
        (CARD + OPENED.replace("/lib/libcublas.so.13", ""), False),
        (CARD.replace("real", "simulated") + OPENED, False),
        # A backend for real GPUs that finds none.
        ("  none\n\nCUDA\n  runtime's kind  real" + OPENED, False),
    ],
)
def test_the_facts_show_a_real_gpu_and_its_libraries(row, passes):
    (step,) = (step for step in steps.STEPS if step.name == "facts")
    assert (step.evidence(f"GPUs\n{row}\n") is None) is passes


@pytest.mark.parametrize(
    "counts, why",
    [
        ((90, 90, 9, 9), None),
        ((90, 92, 9, 20), None),
        ((0, 90, 9, 9), "only 0 of 90 tests ran on cuda:0"),
        ((50, 90, 9, 9), "only 50 of 90 tests ran on cuda:0"),
        ((90, 90, 0, 9), "only 0 of 9 tests ran on cuda:1"),
    ],
)
def test_tests_that_ran_too_rarely(counts, why):
    log = "".join(
        f"ran on cuda:{i} NVIDIA T4 (virtual GPU {i + 1} of 2) (real): {{}} of {{}} tests\n"
        for i in (0, 1)
    )
    assert runner.tests_on_a_real_gpu(log.format(*counts)) == why


def profiled(*names):
    """What ncu prints of kernels."""
    return "ran on cuda:0 NVIDIA T4 (real)\n" + "".join(
        f"  void <unnamed>::{name}<float>(int) (4, 1, 1)x(256, 1, 1), Context 1, "
        "Stream 7, Device 0, CC 7.5\n    Section: GPU Speed Of Light Throughput\n"
        for name in names
    )


def test_the_profile_has_all_kernels():
    (step,) = (step for step in steps.STEPS if step.name == "profile")
    wanted = sorted(set(kernels.KERNELS.values()))
    assert len(wanted) > 15
    assert step.evidence(profiled(*wanted)) is None
    assert step.evidence(profiled(*wanted[1:])) == f"ncu has not measured {wanted[0]}"
    unmeasured = profiled(*wanted).replace("Speed Of Light", "Occupancy", 1)
    assert step.evidence(unmeasured) == f"ncu has not measured {wanted[0]}"
    text = "".join(
        path.read_text() for path in (ROOT / "csrc" / "cuda" / "kernels").glob("*")
    )
    for name in wanted:
        assert re.search(rf"__global__[^;{{]*\b{name}\w*\(", text), name


@pytest.mark.parametrize(
    "said, why",
    [
        ("goals: 9 of 9 reached", None),
        ("goals: 8 of 9 reached\nmissed: a: 10% of b, not 75%", "1 goals are missed"),
        ("goals: 0 of 0 reached", "no case was compared with its goal"),
        ("", "no case was compared with its goal"),
    ],
)
def test_goals_of_the_benchmarks_are_compared(said, why):
    (step,) = (step for step in steps.STEPS if step.name == "benchmarks")
    log = f"ran on cuda:0 NVIDIA T4 (real)\n{said}\n"
    assert step.evidence(log) == why


@pytest.mark.parametrize(
    "summary, why",
    [
        ("ERROR SUMMARY: 0 errors", None),
        ("RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)", None),
        ("ERROR SUMMARY: 1 error", "the sanitizer found 1 faults"),
        (
            "RACECHECK SUMMARY: 2 hazards displayed (0 errors, 2 warnings)",
            "the sanitizer found 2 faults",
        ),
        ("COMPUTE-SANITIZER", "its log has no summary of the sanitizer"),
    ],
)
def test_a_sanitizer_says_what_it_found(summary, why):
    ran = "ran on cuda:0 NVIDIA T4 (real)"
    assert runner.without_hazards(f"{ran}\n========= {summary}\n") == why
    assert "does not say" in runner.without_hazards(f"========= {summary}\n")


def test_each_sanitizer_has_to_say_it():
    tools = [step for step in steps.STEPS if step.tool == "compute-sanitizer"]
    assert len(tools) > 5
    assert {step.evidence for step in tools} == {runner.without_hazards}


@pytest.mark.slow
def test_a_stopped_run_keeps_its_failures(tmp_path):
    (tmp_path / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())
    (tmp_path / "test_it.py").write_text("def test_it():\n    assert 1 == 2\n")
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", tmp_path],
        cwd=tmp_path,
        env={
            **{k: v for k, v in os.environ.items() if "XDIST" not in k},
            "PYTHONSAFEPATH": "1",
            "PYDEVTENSOR_TEST_FAILURES": str(tmp_path / "failures.txt"),
        },
        capture_output=True,
    )
    said = (tmp_path / "failures.txt").read_text()
    assert said.count("test_it.py::test_it (call)") == 1 and "assert 1 == 2" in said


def test_tests_that_ran_on_the_simulator(tmp_path):
    """The line is the one that the tests write."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider"]
        + ["tests/test_memory.py", "-k", "counters"],
        cwd=ROOT,
        env={**os.environ, "PYTHONSAFEPATH": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    assert re.search(r"^ran on cuda:0 .*: [1-9]\d* of \d+ tests$", done.stdout, re.M)
    if "(simulated)" in done.stdout:
        why = runner.tests_on_a_real_gpu(done.stdout)
        assert why == "it ran on a simulated GPU"


def test_the_list_of_what_is_unchecked_names_the_steps():
    text = (ROOT / "docs" / "gpu-unchecked.md").read_text()
    named = set(re.findall(r"`([a-z-]+)`", text))
    known = {step.name for step in steps.STEPS}
    assert known <= named, known - named
    # Each item says which step will check it.
    for item in re.findall(r"^- \*\*.*?(?=^- \*\*|\Z)", text, re.M | re.S):
        assert known & set(re.findall(r"`([a-z-]+)`", item)), item
