"""%%cuda: a whole CUDA program in a cell of a notebook."""

import pytest

from pydevtensor import _magic

pytestmark = pytest.mark.slow


@pytest.fixture
def run(capsys):
    """A function that runs a cell and returns its output and error messages."""
    shell = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell()
    shell.run_line_magic("load_ext", "pydevtensor")

    def run(line, cell):
        capsys.readouterr()
        shell.run_cell_magic("cuda", line, cell)
        return capsys.readouterr()

    return run


def test_the_magic(run):
    cell = '#include <cstdio>\nint main() { int n; cudaGetDeviceCount(&n); printf("%d\\n", n); }\n'
    assert run("--gpus 3 --card=h100 -O3", cell) == ("3\n", "")
    assert run("", "int main() { return 3; }\n") == (
        "",
        "the program ended with exit status 3\n",
    )
    assert "cell.cu:2:21: error:" in run("", "int main() { return x; }\n").err


def test_arguments_are_the_programs(run):
    cell = "#include <cstdio>\nint main(int n, char **a) { while (--n) puts(*++a); }\n"
    assert run("-- one --card", cell).out == "one\n--card\n"


def test_paths_are_those_of_the_notebook(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside" / "size.h").write_text("#define SIZE 7\n")
    (tmp_path / "twice.cu").write_text("int twice(int n) { return 2 * n; }\n")
    cell = '#include "size.h"\nint twice(int);\nint main() { return twice(SIZE); }\n'
    for option in ("-Ibeside", "-I beside", "--include-path=beside"):
        assert "status 14" in run(f"{option} twice.cu", cell).err


@pytest.mark.parametrize("option", ["-o other", "-c", "-dc", "-run", "--output-file=x"])
def test_a_cell_is_not_a_file(option):
    with pytest.raises(ValueError, match="python -m pydevtensor nvcc"):
        _magic._cuda(option, "int main() {}\n")
