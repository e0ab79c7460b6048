"""utils.tensorboard: the files say what was written, as TensorBoard's own loader reads."""

import io

import numpy as np
import pytest

import pydevtensor as torch

pytest.importorskip("tensorboard")
SummaryWriter = pytest.importorskip("pydevtensor.utils.tensorboard").SummaryWriter


def events(folder):
    from tensorboard.backend.event_processing.event_file_loader import (
        LegacyEventFileLoader,
    )

    (path,) = folder.glob("events.*")
    return list(LegacyEventFileLoader(str(path)).Load())


def values(folder):
    return [(e.step, v) for e in events(folder) for v in e.summary.value]


def test_scalars(tmp_path, device):
    with SummaryWriter(tmp_path) as writer:
        writer.add_scalar("a", 1.5, 3)
        writer.add_scalar("b", torch.tensor([2.0], device=device), 4)
        writer.add_scalar("c", np.float64(0.1), 5, 123.0, True, True)
        writer.add_scalar("d", 0.5, new_style=True)
        assert writer.get_logdir() == str(tmp_path)
    a, b, c, d = values(tmp_path)
    assert (a[0], a[1].tag, a[1].simple_value) == (3, "a", 1.5)
    assert (b[0], b[1].tag, b[1].simple_value) == (4, "b", 2.0)
    assert c[1].tensor.double_val == [0.1] and d[1].tensor.float_val == [0.5]
    assert c[1].metadata.plugin_data.plugin_name == "scalars"
    times = [e.wall_time for e in events(tmp_path)]
    assert 123.0 in times and min(t for t in times if t != 123.0) > 1e9


def test_several_scalars_are_runs(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        for step in range(2):
            writer.add_scalars("m/n", {"x": step, "y": 2.0}, step)
    found = values(tmp_path / "m_n_x")
    assert [(step, v.tag, v.simple_value) for step, v in found] == [
        (0, "m/n", 0.0),
        (1, "m/n", 1.0),
    ]
    assert len(values(tmp_path / "m_n_y")) == 2


# Of PyTorch 2.13: how many buckets, the ends of the limits, and which are not empty.
HISTOGRAMS = [
    (torch.arange(10.0), {}, 315, (0.0, 9.034631729891638), [1, 291, 299]),
    (torch.tensor([-3.0, 0.5]), {}, 588, (-3.1665833053880363, 0.5177616740489182), []),
    (torch.arange(10.0), {"bins": 4}, 5, (0.0, 9.0), [1, 2, 3]),
    (torch.zeros(3), {}, 2, (0.0, 1e-12), [1]),
    (torch.tensor([1e-13, 5.0]), {}, 309, (0.0, 5.099814079160488), [1, 308]),
]


@pytest.mark.parametrize(("x", "options", "count", "ends", "first"), HISTOGRAMS)
def test_histograms(tmp_path, device, x, options, count, ends, first):
    with SummaryWriter(tmp_path) as writer:
        writer.add_histogram("h", x.to(device), 1, **options)
    ((step, value),) = values(tmp_path)
    histo, x = value.histo, x.numpy().astype(np.float64)
    assert (step, value.tag) == (1, "h") and len(histo.bucket) == count
    assert (histo.min, histo.max, histo.num) == (x.min(), x.max(), x.size)
    assert (histo.sum, histo.sum_squares) == (x.sum(), x @ x)
    limits = histo.bucket_limit[0], histo.bucket_limit[-1]
    assert limits == pytest.approx(ends) and sum(histo.bucket) == x.size
    some = [i for i, n in enumerate(histo.bucket) if n]
    assert some[: len(first)] == first and some[0] == 1 and some[-1] == count - 1


def test_a_histogram_of_few_bins(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_histogram("h", np.arange(100.0), max_bins=7)
    histo = values(tmp_path)[0][1].histo
    assert len(histo.bucket) <= 9 and sum(histo.bucket) == 100


def shown(folder):
    image = pytest.importorskip("PIL.Image")
    ((_, value),) = values(folder)
    read = np.array(image.open(io.BytesIO(value.image.encoded_image_string)))
    sizes = value.image.height, value.image.width, value.image.colorspace
    assert read.shape == sizes
    return read


def test_images(tmp_path, device):
    x = torch.rand(3, 4, 5, device=device)
    with SummaryWriter(tmp_path / "a") as writer:
        writer.add_image("i", x)
    expected = (x.cpu().numpy() * np.float32(255)).astype(np.uint8)
    assert np.array_equal(shown(tmp_path / "a"), expected.transpose(1, 2, 0))
    with SummaryWriter(tmp_path / "b") as writer:
        writer.add_image("i", torch.tensor([[0, 255]], dtype=torch.uint8), 0, 0.0, "HW")
    assert shown(tmp_path / "b").tolist() == [[[0] * 3, [255] * 3]]
    with SummaryWriter(tmp_path / "c") as writer:
        writer.add_image("i", torch.ones(2, 3, 4), dataformats="HWC")
    assert shown(tmp_path / "c").shape == (2, 3, 4)
    many = torch.arange(10, dtype=torch.uint8).view(10, 1, 1, 1).expand(10, 1, 2, 3)
    with SummaryWriter(tmp_path / "d") as writer:
        writer.add_images("i", many)
    read = shown(tmp_path / "d")
    assert read.shape == (4, 24, 3) and (read[0, ::3, 0] == range(8)).all()
    assert read[2, ::3, 0].tolist() == [8, 9, 0, 0, 0, 0, 0, 0]


def test_figures(tmp_path):
    plt = pytest.importorskip("matplotlib.pyplot")
    figure = plt.figure(figsize=(1, 2), dpi=50)
    with SummaryWriter(tmp_path) as writer:
        writer.add_figure("f", figure)
    assert shown(tmp_path).shape == (100, 50, 3)
    assert figure.number not in plt.get_fignums()


def test_texts_and_options(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_text("t", "hi", 2)
        options = {"lr": 0.1, "o": "x", "b": True, "n": torch.tensor(3)}
        writer.add_hparams(options, {"acc": 0.5}, {"o": ["x", "y"]}, run_name="r")
    ((step, value),) = values(tmp_path)
    assert (step, value.tag, value.tensor.string_val) == (2, "t/text_summary", [b"hi"])
    assert value.metadata.plugin_data.plugin_name == "text"
    tags = {v.tag: v for _, v in values(tmp_path / "r")}
    assert {"_hparams_/experiment", "_hparams_/session_start_info", "acc"} <= set(tags)
    assert tags["acc"].simple_value == 0.5
    started = tags["_hparams_/session_start_info"].metadata.plugin_data.content
    assert b"lr" in started and b"x" in started


def test_a_writer_goes_on_after_close(tmp_path):
    writer = SummaryWriter(tmp_path, purge_step=7)
    writer.flush()
    starts = [e for e in events(tmp_path) if e.HasField("session_log")]
    assert [e.step for e in starts] == [7]
    writer.close()
    writer.close()
    assert writer.file_writer is None


def test_the_default_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    SummaryWriter(comment="_c").close()
    (folder,) = (tmp_path / "runs").iterdir()
    assert folder.name.endswith("_c") and len(events(folder)) == 1


@pytest.mark.parametrize(
    ("error", "words", "call"),
    [
        (ValueError, "give 1 or more", lambda w: w.add_histogram("h", torch.ones(0))),
        (ValueError, "could not", lambda w: w.add_scalar("x", "a")),
        (AssertionError, "give one number", lambda w: w.add_scalar("x", torch.ones(2))),
        (AssertionError, "'CHW'", lambda w: w.add_image("x", torch.ones(2, 2))),
        (AssertionError, "2 channels", lambda w: w.add_image("x", torch.ones(2, 2, 2))),
        (TypeError, "have to be dicts", lambda w: w.add_hparams(3, 4)),
        (ValueError, "'a' is a list", lambda w: w.add_hparams({"a": [1]}, {})),
        (NotImplementedError, "add_figure", lambda w: w.add_pr_curve("a", 1, 2)),
        (NotImplementedError, "print the module", lambda w: w.add_graph(3)),
    ],
)
def test_errors(tmp_path, error, words, call):
    with SummaryWriter(tmp_path) as writer, pytest.raises(error, match=words):
        call(writer)
