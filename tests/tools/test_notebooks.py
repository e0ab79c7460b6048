"""The notebooks run in a real Jupyter kernel: on simulated GPUs and on the CPU alone."""

import os
import re
from pathlib import Path

import pytest
from isolated import environment

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))

pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
nbformat = pytest.importorskip("nbformat")

# What a notebook claims of what it computed, on any device.
CLAIMS = {
    "convolution.ipynb": [
        "the same as by hand: True",
        "the filter is found again: True",
        "as the rule says: True",
        "a sum over the channels: True",
        "a linear layer: True",
        "pixels that changed: 6",
        "[[1.0, 0.0], [0.0, 0.0]] [[0.25, 0.0], [0.0, 0.0]]\n" * 2,
        "epoch 6: loss 0.",
        "as by hand: True",
        "running mean near 5: True",
        "one alone as in the batch: True",
        "faster at first: True",
        "<All keys matched successfully>",
        "the same answers: True",
    ],
    "gpu.ipynb": ["the same norms: True"],
    "kernels.ipynb": [
        "block  [0, 0, 0, 0, 1, 1, 1, 1]",
        "4 blocks; as PyTorch's operations say: True",
        "44 elements are wrong",
        "a column      32 sectors,  12% of their bytes are used",
        "[63.0, 62.0, 61.0] ... [2.0, 1.0, 0.0, 127.0, 126.0, 125.0]",
        "Put __syncthreads() between lines 6 and 8",
        "a column of [32][32]   32 words in one bank",
        "a column of [32][33]    1 words in one bank",
        "transposed: True",
        "as a @ b: True",
        "9 in 0.0130 ms of the card",
        "right right right",
    ],
    "parameters.ipynb": [
        "copies to the CPU:",
        "<All keys matched successfully>",
        "same answers: True",
        "size mismatch for 0.weight",
        "as without a stop: True",
        "asks for builtins.print",
        "the same values: True",
    ],
    "several-gpus.ipynb": [
        "waits while the work was started: 0",
        "all done: [1.0",
        "parameters as on one device: True",
        "the same parameters: True",
    ],
    "several-machines.ipynb": [
        "rank 0 of 3\nrank 1 of 3\nrank 2 of 3\n",
        "rank 0: by hand 0.0000000, by all_reduce 0.0000000",
        "rank 2: by hand 0.1000000, by all_reduce 0.0000000",
        "rank 0 of 1: 64 points, loss of all 0.2197",
        "rank 3 of 4: 16 points, loss of all 0.2197",
        "rank 0 calls all_reduce(SUM) of 1 float32 at wrong.py:27, and rank 1 calls",
        "epoch 20: loss 0.",
        "of node 1: keeps 4,204,544 of 4,204,544",
        "of node 1: keeps 1,051,136 of 4,204,544",
        "2 x 2 H100 SXM, eth25 between nodes",
        "train.py:38  reduce_scatter_tensor",
        "the same parameters: True",
        "<All keys matched successfully>",
        "rank 1: has [16, 8] of [32, 8], norm of the gradient 0.1232, of the rows",
    ],
    "timeline.ipynb": [
        "read one by one: 32.0 ms",
        "kept on the GPU: 24.0 ms",
        "In[2]:7",
        "waited 1000 times",
        "is forbidden by transfer_guard('disallow_implicit')",
        "one after the other 6.23 ms, both at once 3.20 ms",
        "in turn 2.04 ms, side by side 1.20 ms",
        "relu_backward           backward  Sequential.1",
        "8 tensors In[11]:2",
        "Missing between program.py:7 and program.py:8: s2.wait_stream(s1)",
        "  the host ",
    ],
    "training.ipynb": [
        "cpu [##############################] 276/276",
        "losses agree to four digits: True",
        "parameters agree: True",
    ],
}
# What gpu.ipynb counts where there are two GPUs, real or simulated.
COUNTED = [
    "one_by_one: 1000 waits, 1000 copies",
    "kept_there: 1 waits, 1 copies",
    "products on ['cuda:0', 'cuda:1'] with 0 waits so far",
]
# Those on simulated GPUs, whatever the machine has.
SIMULATED = ["kernels.ipynb", "several-machines.ipynb", "timeline.ipynb"]
NEEDED = {
    "convolution.ipynb": ["matplotlib"],
    "kernels.ipynb": ["matplotlib"],
    "training.ipynb": ["matplotlib", "sklearn"],
}


def printed(notebook):
    texts = []
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            assert output.output_type != "error", output
            # A line that is printed may come in two outputs.
            stream = output.output_type == "stream"
            texts.append(
                output["text"]
                if stream
                else output.get("data", {}).get("text/plain", "") + "\n"
            )
    return "".join(texts)


def run(path, monkeypatch, gpus):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import notebooks

    for name in list(os.environ):
        if name.startswith("PYDEVTENSOR_"):
            monkeypatch.delenv(name)
    for name, value in environment(PYDEVTENSOR_NOTEBOOK_GPUS=str(gpus)).items():
        monkeypatch.setenv(name, value)
    return printed(notebooks.execute(path, timeout=300))


@pytest.mark.slow
@pytest.mark.parametrize("gpus", [0, 2])
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_runs(path, gpus, monkeypatch):
    for module in NEEDED.get(path.name, ()):
        pytest.importorskip(module)
    text = run(path, monkeypatch, gpus)
    assert [claim for claim in CLAIMS[path.name] if claim not in text] == []
    if path.name not in SIMULATED:
        assert f"GPUs: {gpus}" in text
        assert ("cuda:1" in text) == (gpus == 2) or not gpus
    if path.name == "gpu.ipynb" and gpus:
        assert [claim for claim in COUNTED if claim not in text] == []


@pytest.mark.slow
def test_a_cell_that_ran_out_of_memory_frees_its_tensors(tmp_path, monkeypatch):
    cells = [
        "import pydevtensor as torch\ntorch.cuda.simulate(1, memory='16M')\n"
        "def fill():\n"
        "    kept = []\n"
        "    while True:\n"
        "        kept.append(torch.ones(1 << 18, device='cuda'))",
        "kept = torch.ones(1 << 18, device='cuda')\nfill()",
        "print(torch.cuda.memory_allocated() >> 20)",
    ]
    notebook = nbformat.v4.new_notebook(
        cells=list(map(nbformat.v4.new_code_cell, cells))
    )
    notebook.cells[1].metadata.tags = ["raises-exception"]
    nbformat.write(notebook, tmp_path / "full.ipynb")
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import notebooks

    failed, after = notebooks.execute(tmp_path / "full.ipynb", timeout=300).cells[1:]
    said = {output.output_type: output for output in failed.outputs}
    assert said["error"].ename == "OutOfMemoryError"
    assert "are freed" in said["stream"].text
    assert after.outputs[0].text == "1\n"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_is_stored_with_the_outputs_of_two_gpus(path):
    text = printed(nbformat.read(path, as_version=4))
    assert "imulated" in text and ("GPUs: 2" in text or path.name in SIMULATED)
    assert [claim for claim in CLAIMS[path.name] if claim not in text] == []


def test_the_exercises_show_a_gain_on_the_clock():
    """In milliseconds: asking once beats asking often, two GPUs beat one."""
    text = printed(nbformat.read(ROOT / "notebooks" / "gpu.ipynb", as_version=4))
    often, once = re.findall(r"copies, ([\d.]+) ms", text)
    assert float(once) < float(often)
    in_turn, at_once = re.findall(r"(?:in turn|at once): ([\d.]+) ms", text)
    assert float(at_once) < 0.6 * float(in_turn)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_no_output_is_an_address(path):
    text = printed(nbformat.read(path, as_version=4))
    assert re.findall(r"<.* at 0x[0-9a-f]+>", text) == []


@pytest.mark.slow
def test_the_demo_shows_what_a_terminal_can(monkeypatch, capsys):
    """Drawings in characters, as wide as the terminal, though the kernel has none."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import demo

    cell = nbformat.v4.new_code_cell(
        "import pydevtensor as torch\n"
        "with torch.profiler.profile() as prof:\n    torch.ones(3).exp()\n"
        "prof.timeline()"
    )
    notebook = nbformat.v4.new_notebook(cells=[cell])
    for name in environment():
        monkeypatch.setenv(name, environment()[name])
    monkeypatch.setenv("COLUMNS", "47")
    monkeypatch.setattr(demo.notebooks.nbformat, "read", lambda *_, **__: notebook)
    assert demo.main() == 0
    ruler, host, *_ = capsys.readouterr().out.splitlines()
    assert ruler.startswith("      |0 ns") and host.startswith("host  ")
    assert len(host) == 47


@pytest.mark.parametrize(
    ("name", "seen", "least", "pictures"),
    [
        ("training.ipynb", "359 digits", 94, 3),
        ("convolution.ipynb", "400 pictures", 90, 5),
    ],
)
def test_the_digits_are_learned(name, seen, least, pictures):
    """The stored run: what it says of digits never seen, and that it drew its curves."""
    notebook = nbformat.read(ROOT / "notebooks" / name, as_version=4)
    right = re.search(rf"right of {seen} never seen: ([\d.]+)%", printed(notebook))
    assert float(right[1]) > least
    drawn = [
        output
        for cell in notebook.cells
        for output in cell.get("outputs", ())
        if "image/svg+xml" in output.get("data", {})
    ]
    assert len(drawn) == pictures
