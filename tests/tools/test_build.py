"""The build system: its messages where something is missing, and that it rebuilds exactly what a
change concerns."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "build"))

import cuda  # noqa: E402
import products  # noqa: E402
import toolchain  # noqa: E402
from toolchain import BuildError, Settings  # noqa: E402

# What `make` itself needs; the compilers are each test's affair.
TOOLS = ("sh", "make", "env", "rm", "sed", "expand", "true", "find")
COMPILERS = ("cc", "c++")
SWITCHES = re.compile(
    "PYDEVTENSOR|CC$|CXX$|CFLAGS|CXXFLAGS|CPPFLAGS|LDFLAGS|NVCC|CUDA|MAKE|MFLAGS|"
    "PYTHON|VIRTUAL_ENV"
)

pytestmark = pytest.mark.skipif(
    bool(os.environ.get("PYDEVTENSOR_SANITIZE")), reason="says nothing of the library"
)


@pytest.fixture
def tree(tmp_path):
    """A source tree of its own, with an extension module of a few lines."""
    root = tmp_path / "tree"
    root.mkdir()
    for name in ("Makefile", "pyproject.toml", "setup.py", "LICENSE"):
        shutil.copy(ROOT / name, root)
    junk = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "tools" / "build", root / "tools" / "build", ignore=junk)
    texts = (ROOT / "pydevtensor" / "_signatures.py").read_text()
    files = {
        "pydevtensor/_signatures.py": texts,
        "csrc/base/one.h": "int dt_one(void);\n",
        "csrc/base/one.c": '#include "base/one.h"\nint dt_one(void) { return 1; }\n',
        "csrc/base/two.c": "int dt_two(void);\nint dt_two(void) { return 2; }\n",
        "csrc/sim/module.h": "int dt_sim();\n",
        "csrc/sim/program.h": "int dt_sim();\n",
        "csrc/cuda/kernels/chain_kernel.h": "int dt_sim();\n",
        "csrc/sim/run.cpp": "int dt_sim() { return 3; }\n",
        "csrc/python/module.c": (
            '#include <Python.h>\n#include "base/one.h"\n'
            "static struct PyModuleDef def = {PyModuleDef_HEAD_INIT, .m_name = "
            '"_C"};\nPyMODINIT_FUNC PyInit__C(void)\n'
            "{ return dt_one() == 1 ? PyModuleDef_Init(&def) : NULL; }\n"
        ),
        "pydevtensor/__init__.py": 'from . import _C as _C\n\n__version__ = "1.0"\n',
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.fixture
def machine(tmp_path):
    """A PATH on which there is little more than make."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in TOOLS:
        link(folder, name)
    (folder / "python3").symlink_to(base_python())
    return folder


def base_python():
    return os.path.realpath(sys._base_executable or sys.executable)


def link(folder, name):
    found = shutil.which(name)
    assert found, name
    (folder / name).symlink_to(found)


def script(path, text):
    path.unlink(missing_ok=True)
    path.write_text("#!/bin/sh\n" + text + "\n")
    path.chmod(0o755)
    return path


def pythons_with(folder, code):
    """A python3 that runs `code` before anything else, as a broken one would be."""
    (folder / "sitecustomize.py").write_text(code)
    return script(
        folder / "python3",
        f'PYTHONPATH={folder} exec {base_python()} "$@"',
    )


def environment(path, **more):
    kept = {k: v for k, v in os.environ.items() if not SWITCHES.match(k)}
    return {**kept, "PATH": str(path), **more}


def make(tree, machine, *arguments, **more):
    return subprocess.run(
        ["make", "--no-print-directory", *arguments],
        cwd=tree,
        env=environment(machine, **more),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )


def refusal(done):
    """The one sentence with which make stopped."""
    assert done.returncode != 0
    assert "Traceback" not in done.stdout
    ours = [line for line in done.stdout.splitlines() if "pydevtensor:" in line]
    assert len(ours) == 1, done.stdout
    return ours[0]


def test_no_python(tree, machine):
    (machine / "python3").unlink()
    said = refusal(make(tree, machine))
    assert "sudo apt-get install python3 " in said and "python3-venv" in said


def test_named_python_is_missing(tree, machine):
    assert "'python3.99'" in refusal(make(tree, machine, "PYTHON=python3.99"))


def test_old_python(tree, machine):
    pythons_with(machine, "import sys\nsys.version_info = (3, 9, 2, 'final', 0)\n")
    said = refusal(make(tree, machine))
    assert "3.11 or newer" in said and "3.9.2" in said
    assert "make PYTHON=python3" in said


def test_really_old_python(tree, machine):
    homes = (Path.home() / ".pyenv" / "versions").glob("3.[6-9].*/bin/python3")
    old = next(iter(sorted(homes)), None) or shutil.which("python3.9")
    if old is None:
        pytest.skip("no Python older than 3.11 is installed")
    for name in COMPILERS:
        link(machine, name)
    assert "3.11 or newer" in refusal(make(tree, machine, f"PYTHON={old}"))


def test_no_venv(tree, machine):
    pythons_with(machine, "import sys\nsys.modules['ensurepip'] = None\n")
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    said = refusal(make(tree, machine))
    assert said.endswith(f"sudo apt-get install python{version}-venv")


def test_no_python_header(tree, machine):
    for name in COMPILERS:
        link(machine, name)
    pythons_with(
        machine,
        "import sysconfig\n"
        "old = sysconfig.get_path\n"
        "sysconfig.get_path = lambda name, *a, **k: ('/gone' if 'include' in name "
        "else old(name, *a, **k))\n",
    )
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    said = refusal(make(tree, machine))
    assert "Python.h" in said
    assert said.endswith(f"sudo apt-get install python{version}-dev")


@pytest.mark.parametrize(
    "have, missing", [((), "No C compiler"), (("cc",), "No C++ compiler")]
)
def test_no_compiler(tree, machine, have, missing):
    for name in have:
        link(machine, name)
    said = refusal(make(tree, machine))
    assert missing in said
    assert said.endswith("sudo apt-get install build-essential")


def test_named_compiler_is_missing(tree, machine):
    said = refusal(make(tree, machine, CC="nocc"))
    assert "'nocc'" in said and "CC" in said and "build-essential" in said


def test_compiler_without_libc(tree, machine):
    link(machine, "c++")
    script(machine / "cc", 'echo "stdio.h: No such file or directory"\nexit 1')
    said = refusal(make(tree, machine))
    assert "stdio.h" in said and "build-essential" in said


def test_every_target_has_a_line_of_help(machine):
    done = make(ROOT, machine, "help")
    assert done.returncode == 0
    told = {line.split()[0] for line in done.stdout.splitlines()}
    wanted = {
        "build",
        "demo",
        "check",
        "test",
        "asan",
        "bench",
        "lint",
        "gpu-check",
        "gpu-kit",
    }
    assert told >= wanted | {"notebooks", "clean"}


# Building.


def build(tree, **more):
    """What `products.py` says that it does, as a set of lines; the exit status."""
    done = subprocess.run(
        [sys.executable, "tools/build/products.py"],
        cwd=tree,
        env=environment(os.environ["PATH"], **{"PYDEVTENSOR_CUDA": "0", **more}),
        capture_output=True,
        text=True,
    )
    did = {line for line in done.stdout.splitlines() if "no CUDA" not in line}
    return did, done


def sources_of(lines):
    return {line.split("/")[-1] for line in lines if not line.startswith("link")}


ALL = {"one.c", "two.c", "run.cpp", "module.c"}


@pytest.mark.slow
def test_rebuilds_what_changed(tree):
    did, done = build(tree)
    assert done.returncode == 0, done.stderr
    assert sources_of(did) == ALL
    assert build(tree)[0] == set()

    (tree / "csrc/base/one.h").write_text("/* other */\nint dt_one(void);\n")
    did, _ = build(tree)
    assert sources_of(did) == {"one.c", "module.c"}
    assert len(did) == 4, "both libraries hold csrc/base, so both are linked again"

    (tree / "csrc/python/module.c").touch()
    did, _ = build(tree)
    assert sources_of(did) == {"module.c"}
    assert len(did) == 2, "only the extension module is linked again"
    assert build(tree)[0] == set()


@pytest.mark.slow
def test_flags_are_part_of_freshness(tree):
    build(tree)
    did, _ = build(tree, CFLAGS="-DOTHER")
    assert sources_of(did) == ALL - {"run.cpp"}
    assert build(tree)[0] == set(), "the first build was kept beside the second"
    assert sources_of(build(tree, CXXFLAGS="-DOTHER")[0]) == {"run.cpp"}
    assert sources_of(build(tree, PYDEVTENSOR_WERROR="1")[0]) == ALL


@pytest.mark.slow
def test_new_and_removed_sources(tree):
    build(tree)
    (tree / "csrc/device").mkdir()
    (tree / "csrc/device/three.c").write_text("typedef int dt_three;\n")
    did, _ = build(tree)
    assert sources_of(did) == {"three.c"} and len(did) == 2
    (tree / "csrc/device/three.c").unlink()
    assert sources_of(build(tree)[0]) == set()


@pytest.mark.slow
def test_failure_is_told_and_not_cached(tree):
    path = tree / "csrc/base/two.c"
    good = path.read_text()
    path.write_text("int dt_two(void) { return wrong; }\n")
    for _ in range(2):
        _, done = build(tree)
        assert done.returncode == 1
        assert "wrong" in done.stderr
        assert "Compiling csrc/base/two.c failed" in done.stderr
        assert "Traceback" not in done.stderr
    path.write_text(good)
    assert build(tree)[1].returncode == 0


@pytest.mark.slow
def test_warnings_become_errors(tree):
    (tree / "csrc/base/two.c").write_text("static int unused;\n")
    assert build(tree)[1].returncode == 0
    _, done = build(tree, PYDEVTENSOR_WERROR="1")
    assert done.returncode == 1 and "unused" in done.stderr


def test_function_without_a_body_is_found(tree):
    path = tree / "csrc/python/module.c"
    path.write_text(
        path.read_text() + "int dt_gone(void);\nint dt_use(void);\n"
        "int dt_use(void) { return dt_gone(); }\n"
        '__attribute__((visibility("default"))) int (*keep)(void) = dt_use;\n'
    )
    _, done = build(tree)
    assert done.returncode == 1 and "dt_gone" in done.stderr


@pytest.mark.slow
def test_variants_are_built_once_each(tree):
    if not toolchain.find_cc().is_x86_64:
        pytest.skip("instruction-set variants are x86-64's")
    (tree / "csrc/cpu").mkdir()
    (tree / "csrc/cpu/add.isa.c").write_text(
        "#define JOIN(a, b) a##b\n#define NAME(isa) JOIN(dt_add_, isa)\n"
        "int NAME(DT_ISA)(void);\nint NAME(DT_ISA)(void) { return 0; }\n"
        "#if defined __AVX512F__\nint dt_wide;\n#endif\n"
    )
    did, done = build(tree)
    assert done.returncode == 0, done.stderr
    variants = {line.split("[")[-1] for line in did if "add.isa.c" in line}
    assert variants == {"baseline]", "avx2]", "avx512]"}
    numbers = sorted(line.split()[0] for line in did if line[0] == "[")
    assert numbers == [f"[{i}/7]" for i in range(1, 8)], "how many are left is said"
    wide = list(tree.glob("build/objects/*/csrc/cpu/add.isa.c.avx512.o"))
    narrow = list(tree.glob("build/objects/*/csrc/cpu/add.isa.c.avx2.o"))
    assert b"dt_wide" in wide[0].read_bytes()
    assert b"dt_wide" not in narrow[0].read_bytes()


def test_a_quick_build_is_for_this_machine(switches, monkeypatch):
    source = products.sources("csrc/cpu/**/*.isa.cpp")[0]
    isas = [unit.suffix for unit in products.Plan.from_environment().variants(source)]
    switches(PYDEVTENSOR_QUICK="1")
    plan = products.Plan.from_environment()
    (only,) = plan.variants(source)
    assert only.suffix in isas and "-O3" in only.command
    assert f"-DDT_ISAS(ISA)=ISA({plan.only_isa},1)" in only.command
    assert "-O1" in plan.c("csrc/base/shape.c").command
    monkeypatch.setattr(cuda, "CARDS", ())
    found, why = cuda.choose(plan.settings)
    assert found is None and "PYDEVTENSOR_QUICK" in why


@pytest.mark.slow
def test_install_twice_leaves_nothing_behind(tree, tmp_path):
    """A module that is gone from the sources is gone from the next wheel."""
    (tree / "pydevtensor/old.py").write_text("")
    # This tree's extension module has no signatures to make stubs of.
    (tree / "tools/build/stubs.py").write_text("def write(*_):\n    return []\n")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "-q"]
    pip += ["--no-build-isolation", "--no-deps", "-w", str(tmp_path / "out"), "."]
    seen = []
    for _ in range(2):
        subprocess.run(
            pip,
            cwd=tree,
            env=environment(os.environ["PATH"], PYDEVTENSOR_CUDA="0"),
            check=True,
        )
        (wheel,) = (tmp_path / "out").iterdir()
        listing = subprocess.run(
            [sys.executable, "-m", "zipfile", "-l", wheel],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        seen.append("pydevtensor/old.py" in listing)
        (tree / "pydevtensor/old.py").unlink(missing_ok=True)
    assert seen == [True, False]


# nvcc, played by a script.


@pytest.fixture
def nvcc(tmp_path):
    def play(version, archs, compiles=True):
        codes = "\\n".join(f"sm_{arch}" for arch in archs)
        path = script(
            tmp_path / "nvcc",
            'case "$*" in\n'
            f"*--version*) echo 'release {version}, V{version}.0' ;;\n"
            f"*--list-gpu-code*) printf '{codes}\\n' ;;\n"
            + ("" if compiles else "*) echo 'error: unsupported GNU version'; exit 1\n")
            + "esac",
        )
        return cuda.Nvcc(str(path))

    return play


@pytest.fixture
def switches(monkeypatch):
    """Sets the build's environment, of which the surrounding one leaves no trace."""
    for name in list(os.environ):
        if SWITCHES.match(name) and name != "PYTHONPATH":
            monkeypatch.delenv(name)
    caches = (cuda.find_nvcc, toolchain.output_of)
    for cached in caches:
        cached.cache_clear()

    def put(**values):
        for name, value in values.items():
            monkeypatch.setenv(name, value)

    yield put
    for cached in caches:
        cached.cache_clear()


def test_release_is_what_the_compiler_knows(nvcc, switches):
    new = nvcc("13.0", [75, 80, 86, 90, 100, 103, 120, 121])
    assert new.archs("release") == (75, 80, 90, 100, 120)
    old = nvcc("12.4", [50, 60, 70, 75, 80, 86, 89, 90])
    toolchain.output_of.cache_clear()
    assert old.archs("release") == (75, 80, 90)


def test_architectures_can_be_listed(nvcc, switches):
    known = nvcc("13.0", [75, 80, 90])
    for text in ("90;80", "9.0 8.0", "sm_80,sm_90"):
        assert known.archs(text) == (80, 90)
    for text in ("42", "banana", "90;banana"):
        with pytest.raises(BuildError, match="set it to release, native"):
            known.archs(text)


def test_ptx_is_for_the_newest(nvcc, switches):
    switches(PYDEVTENSOR_CUDA_ARCHS="80;90")
    plan = products.Plan.from_environment()
    command = plan.cuda(nvcc("13.0", [80, 90])).objects[0].command
    targets = [flag for flag in command if "gencode" in flag]
    assert targets == [
        "-gencode=arch=compute_80,code=sm_80",
        "-gencode=arch=compute_90,code=sm_90",
        "-gencode=arch=compute_90,code=compute_90",
    ]


PTX_80 = ["-gencode=arch=compute_80,code=compute_80"]
HOPPER = ["-gencode=arch=compute_90a,code=sm_90a", "-DDT_WARPGROUPS"]
OLDEST = [
    "-gencode=arch=compute_75,code=sm_75",
    "-gencode=arch=compute_75,code=compute_75",
]


@pytest.mark.parametrize(
    "source, version, archs, expected",
    [
        ("attention_warpgroups", "13.0", "80;90", HOPPER),
        ("attention_warpgroups_backward", "13.0", "80;90", HOPPER),
        ("attention_warpgroups", "11.8", "80;90", PTX_80),
        ("attention_warpgroups", "13.0", "80", PTX_80),
        ("attention", "13.0", "75;80", OLDEST),
        ("attention", "13.0", "80;90", PTX_80),
        # Kernels that 7.5 has not.
        ("attention_dropout", "13.0", "75;80;90", PTX_80),
        ("attention_dropout", "13.0", "75;80", PTX_80),
        ("attention_dropout", "13.0", "75", OLDEST[1:]),
        ("elementwise_complex", "13.0", "80;90", PTX_80),
    ],
)
def test_some_kernels_are_compiled_for_one_architecture(
    nvcc, switches, source, version, archs, expected
):
    switches(PYDEVTENSOR_CUDA_ARCHS=archs)
    plan = products.Plan.from_environment()
    built = plan.cuda(nvcc(version, [75, 80, 90])).objects
    (command,) = (o.command for o in built if f"/{source}.cu" in o.source)
    flags = [flag for flag in command if "gencode" in flag or "WARPGROUPS" in flag]
    assert flags == expected


@pytest.mark.parametrize(
    "version, flag",
    [
        ("13.0", "--compress-mode=size"),
        ("12.8", "-compress-all"),
        # Host and GPU round alike.
        ("13.0", "-fmad=false"),
    ],
)
def test_flags_for_device_code(nvcc, switches, version, flag):
    assert flag in nvcc(version, [80]).flags([80], werror=False, host=[])


def test_cuda_is_asked_for_and_missing(monkeypatch, switches):
    switches(PYDEVTENSOR_CUDA="1")
    monkeypatch.setattr(cuda, "find_nvcc", lambda: None)
    with pytest.raises(BuildError, match=r"install the CUDA toolkit.*CUDA_HOME"):
        cuda.choose(Settings.from_environment())


def test_cuda_is_missing_or_refused(monkeypatch, switches):
    monkeypatch.setattr(cuda, "find_nvcc", lambda: None)
    found, why = cuda.choose(Settings.from_environment())
    assert found is None and "nvcc was not found" in why
    switches(PYDEVTENSOR_CUDA="0")
    found, why = cuda.choose(Settings.from_environment())
    assert found is None and "PYDEVTENSOR_CUDA=0" in why


def test_nvcc_that_refuses_the_host_compiler(monkeypatch, nvcc, switches):
    broken = nvcc("12.2", [75, 80, 90], compiles=False)
    monkeypatch.setattr(cuda, "find_nvcc", lambda: broken)
    found, why = cuda.choose(Settings.from_environment())
    assert found is None and "unsupported GNU version" in why
    switches(PYDEVTENSOR_CUDA="1")
    with pytest.raises(BuildError, match="NVCC_CCBIN"):
        cuda.choose(Settings.from_environment())


@pytest.mark.parametrize(
    "name, value, words",
    [
        ("PYDEVTENSOR_CUDA", "yes", "0, 1 or auto"),
        ("PYDEVTENSOR_SANITIZE", "memory", "address, thread, undefined"),
        ("PYDEVTENSOR_SANITIZE", "thread,address", "choose one"),
    ],
)
def test_bad_switch(switches, name, value, words):
    switches(**{name: value})
    with pytest.raises(BuildError, match=words):
        products.Plan.from_environment()


def test_cxx_follows_cc(machine, monkeypatch, switches):
    for name in ("clang-14", "clang++-14", "gcc-12"):
        script(machine / name, "true")
    monkeypatch.setenv("PATH", str(machine))
    finders = (toolchain.find_cc, toolchain.find_cxx)
    for cc, cxx in (("clang-14", "clang++-14"), (f"{machine}/clang-14 -m64", None)):
        switches(CC=cc)
        for finder in finders:
            finder.cache_clear()
        found = toolchain.find_cxx().command
        assert found == ((cxx,) if cxx else (f"{machine}/clang++-14", "-m64"))
    for finder in finders:
        finder.cache_clear()


# A second and more of compiling each.
LARGE = ("convolution", "elementwise", "nn", "pooling", "reduce")


def source_of(path):
    large = Path(path).name.partition(".")[0] in LARGE
    return pytest.param(path, marks=[pytest.mark.slow] * large)


@pytest.mark.parametrize(
    "source", [*map(source_of, products.sources("csrc/cpu/**/*.isa.cpp"))]
)
def test_instruction_sets_share_no_function(source, tmp_path):
    # The linker would keep one copy, perhaps one that this processor cannot run.
    unit = products.Plan.from_environment().variants(source)[0]
    made = tmp_path / "kernels.o"
    subprocess.run(
        [*unit.command, "-O0", "-c", source, "-o", made], cwd=ROOT, check=True
    )
    assert not re.findall(r" [uVW] (\w+)", toolchain.output_of("nm", str(made)))
