"""Data sets of pictures: files of MNIST and CIFAR, folders, damaged and hostile files."""

import gzip
import os
import pickle
import random
import struct

import numpy as np
import pytest
from isolated import python

import pydevtensor as torch
from pydevtensor.vision import datasets, transforms

Image = pytest.importorskip("PIL.Image")


def idx(values):
    codes = {"uint8": 8, "int8": 9, "int16": 11, "int32": 12, "float32": 13}
    head = bytes([0, 0, codes[values.dtype.name], values.ndim])
    sizes = struct.pack(f">{values.ndim}i", *values.shape)
    return head + sizes + values.astype(values.dtype.newbyteorder(">")).tobytes()


def write_mnist(root, name="MNIST", train=True, packed=False, count=5, bars=False):
    folder = root / name / "raw"
    folder.mkdir(parents=True, exist_ok=True)
    images = np.arange(count * 28 * 28).astype(np.uint8).reshape(count, 28, 28)
    labels = np.arange(count, dtype=np.uint8) % 10
    for image, label in zip(images, labels, strict=True) if bars else ():
        image[:] = 0
        image[2 * label : 2 * label + 4] = 250
    part = "train" if train else "t10k"
    for what, values in (("images-idx3", images), ("labels-idx1", labels)):
        data = idx(values)
        path = folder / f"{part}-{what}-ubyte{'.gz' if packed else ''}"
        path.write_bytes(gzip.compress(data) if packed else data)
    return images, labels


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    "kind", [datasets.MNIST, datasets.FashionMNIST, datasets.KMNIST]
)
def test_mnist(kind, packed, tmp_path):
    write_mnist(tmp_path, kind.__name__, True, packed)
    images, labels = write_mnist(tmp_path, kind.__name__, False, packed, count=3)
    found = kind(
        str(tmp_path), train=False, transform=transforms.ToTensor(), download=True
    )
    assert len(found) == 3 and len(kind(tmp_path)) == 5
    assert found.data.dtype is torch.uint8 and found.targets.dtype is torch.int64
    assert np.array_equal(found.data.numpy(), images)
    x, y = found[1]
    assert x.shape == (1, 28, 28) and type(y) is int and y == labels[1]
    assert np.array_equal(x[0].numpy(), images[1].astype(np.float32) / 255)
    assert len(found.classes) == 10 and found.class_to_idx[found.classes[3]] == 3
    plain = kind(tmp_path, target_transform=lambda y: -y)[2]
    assert plain[0].mode == "L" and plain[0].size == (28, 28) and plain[1] == -2
    with pytest.raises(IndexError):
        found[3]


def test_a_loader_of_mnist(tmp_path):
    write_mnist(tmp_path)
    data = datasets.MNIST(tmp_path, transform=transforms.ToTensor())
    loader = torch.utils.data.DataLoader(data, 5, num_workers=1)
    ((x, y),) = loader
    assert x.shape == (5, 1, 28, 28) and y.tolist() == [0, 1, 2, 3, 4]


PROGRAM = """
import sys
import torch
import torchvision
from torch import nn
from torchvision import transforms

def loaders(root):
    change = transforms.Compose([transforms.Resize(14), transforms.ToTensor()])
    for train in (True, False):
        data = torchvision.datasets.FashionMNIST(
            root=root, train=train, transform=change, download=True)
        yield torch.utils.data.DataLoader(data, 16, shuffle=train, num_workers=2)

if __name__ == "__main__":
    torch.manual_seed(0)
    train, test = loaders(sys.argv[1])
    net = nn.Sequential(nn.Flatten(), nn.LazyLinear(32), nn.ReLU(), nn.LazyLinear(10))
    losses = []
    optimizer = None
    for epoch in range(8):
        for x, y in train:
            loss = nn.functional.cross_entropy(net(x), y)
            optimizer = optimizer or torch.optim.Adam(net.parameters(), lr=0.02)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        losses.append(loss.item())
    x, y = next(iter(test))
    right = (net(x).argmax(axis=1).type(y.dtype) == y).float().mean()
    print(losses[-1] < 0.2 * losses[0], float(right))
"""


@pytest.mark.slow
def test_a_program_of_the_book(tmp_path):
    """Unchanged: it names torch and torchvision."""
    for train in (True, False):
        write_mnist(tmp_path, "FashionMNIST", train, count=40, bars=True)
    (tmp_path / "program.py").write_text(PROGRAM)
    arguments = ["-m", "pydevtensor", "run", tmp_path / "program.py", tmp_path]
    assert python("", arguments=arguments) == "True 1.0\n"


def test_missing_files_are_named(tmp_path):
    with pytest.raises(RuntimeError) as caught:
        datasets.FashionMNIST(tmp_path, download=True)
    text = str(caught.value)
    for name in ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"):
        assert os.path.join(tmp_path, "FashionMNIST", "raw", name) in text
    assert "zalandoresearch" in text and "nothing from the network" in text
    (tmp_path / "cifar-10-batches-py").mkdir()
    (tmp_path / "cifar-10-batches-py" / "data_batch_2").touch()
    with pytest.raises(RuntimeError) as caught:
        datasets.CIFAR10(tmp_path)
    assert "data_batch_1" in str(caught.value) and "data_batch_2" not in str(
        caught.value
    )


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "float32"])
def test_idx_of_each_type(dtype, tmp_path):
    from pydevtensor.vision.datasets.mnist import read_idx

    values = np.array([[1, -2, 3], [100, 5, 6]]).astype(dtype)
    (tmp_path / "x").write_bytes(idx(values))
    found = read_idx(str(tmp_path / "x"))
    assert np.array_equal(found.numpy(), values) and str(found.dtype).endswith(dtype)


@pytest.mark.parametrize(
    "data",
    [b"", b"\0\0", b"PK\3\4abcdefgh", b"\0\0\7\1\0\0\0\1a", b"\0\0\10\3\0\0\0\1"]
    + [b"\0\0\10\1\0\0\0\2a", b"\0\0\10\1\0\0\0\1ab", b"\0\0\10\1\xff\xff\xff\xffa"]
    + [b"\0\0\10\2\x7f\xff\xff\xff\x7f\xff\xff\xff"],
)
def test_a_damaged_idx_file(data, tmp_path):
    from pydevtensor.vision.datasets.mnist import read_idx

    (tmp_path / "x").write_bytes(data)
    with pytest.raises(ValueError, match=r"is not an idx file|is damaged"):
        read_idx(str(tmp_path / "x"))


def short(text):
    return b"U" + bytes([len(text)]) + text.encode()


def old_batch(data, labels):
    """A batch as Python 2 wrote it, whose strings are bytes."""
    shape = b"".join(b"M" + struct.pack("<H", n) for n in data.shape)
    array = b"cnumpy.core.multiarray\n_reconstruct\nq\1(cnumpy\nndarray\nq\2K\0\x85q\3"
    array += short("b") + b"tRq\4(K\1" + shape + b"\x86cnumpy\ndtype\nq\5("
    array += short("u1") + b"K\0K\1tRq\6(K\3" + short("|") + b"NNNJ\xff\xff\xff\xff"
    array += b"J\xff\xff\xff\xffK\0tb\x89T" + struct.pack("<i", data.nbytes)
    array += data.tobytes() + b"tb"
    numbers = b"](" + b"".join(b"K" + bytes([n]) for n in labels) + b"e"
    return (
        b"\x80\2}q\0(" + short("batch_label") + short("a batch") + short("labels")
        + numbers + short("fine_labels") + b"](" + numbers[2:] + short("data") + array + b"u."
    )  # fmt: skip


def new_batch(data, labels):
    return pickle.dumps({b"data": data, b"labels": labels, b"fine_labels": labels}, 2)


@pytest.mark.parametrize("write", [old_batch, new_batch])
def test_cifar(write, tmp_path):
    data = np.arange(2 * 3072).astype(np.uint8).reshape(2, 3072)
    for folder, names, meta, key in (
        (
            "cifar-10-batches-py",
            [f"data_batch_{i}" for i in range(1, 6)],
            "batches.meta",
            "label_names",
        ),
        ("cifar-10-batches-py", ["test_batch"], "batches.meta", "label_names"),
        ("cifar-100-python", ["train", "test"], "meta", "fine_label_names"),
    ):
        (tmp_path / folder).mkdir(exist_ok=True)
        for i, name in enumerate(names):
            (tmp_path / folder / name).write_bytes(
                write(data + np.uint8(i), [i, 9 - i])
            )
        classes = {key: [f"class {i}" for i in range(10)]}
        (tmp_path / folder / meta).write_bytes(pickle.dumps(classes, 2))
    train = datasets.CIFAR10(tmp_path, download=True)
    assert train.data.shape == (10, 32, 32, 3) and train.data.dtype == np.uint8
    assert train.targets == [0, 9, 1, 8, 2, 7, 3, 6, 4, 5]
    assert train.classes[3] == "class 3" and train.class_to_idx["class 4"] == 4
    image, target = train[3]
    expected = (data[1] + np.uint8(1)).reshape(3, 32, 32).transpose(1, 2, 0)
    assert (
        target == 8
        and image.mode == "RGB"
        and np.array_equal(np.array(image), expected)
    )
    x, _ = datasets.CIFAR10(tmp_path, False, transforms.ToTensor())[1]
    assert np.array_equal(
        x.numpy(), data[1].reshape(3, 32, 32).astype(np.float32) / 255
    )
    assert len(datasets.CIFAR100(tmp_path)) == 2


class Bad:
    def __reduce__(self):
        return exec, ("raise SystemExit('executed')",)


DEEP = b"\x80\2" + b"(" * 3 + b"]" + b"\x85" * 100_000 + b"."


@pytest.mark.parametrize(
    "data",
    [
        pickle.dumps(Bad()),
        pickle.dumps({b"data": Bad()}),
        pickle.dumps({b"labels": [Bad()]}),
        pickle.dumps({b"data": np.ones((2, 3072))}, 2),
        pickle.dumps([1, 2]),
        pickle.dumps({(1, 2): 3}),
        b"",
        b"\x80\2",
        b"\x80\2}",
        b"\x80\2e.",
        b"\x80\2K\1K\2s.",
        b"\x80\2h\7.",
        b"\x80\2K\1K\2R.",
        b"\x80\2K\1}b.",
        b"\x80\2(K\1e.",
        b"PK\3\4",
        b"cos\nsystem\n(U\2lstR.",
        DEEP,
        old_batch(np.zeros((1, 3072), np.uint8), [0])[:-50],
        old_batch(np.zeros((1, 3072), np.uint8), [0]).replace(b"U\2u1", b"U\2u4"),
        old_batch(np.zeros((1, 3072), np.uint8), [0]).replace(b"M\0\x0c", b"M\1\x0c"),
    ],
)
def test_a_batch_that_is_none_runs_nothing(data, tmp_path):
    from pydevtensor.vision.datasets._batches import read_batch

    (tmp_path / "x").write_bytes(data)
    with pytest.raises(ValueError, match="is not a batch of CIFAR"):
        read_batch(str(tmp_path / "x"))


def test_batches_with_changed_bytes_run_nothing(tmp_path):
    from pydevtensor.vision.datasets._batches import read_batch

    good = old_batch(np.zeros((1, 3072), np.uint8), [3])
    source = random.Random(0)
    right = 0
    for _ in range(300):
        data = bytearray(good)
        for _ in range(source.randint(1, 4)):
            at = source.choice([source.randrange(250), source.randrange(len(data))])
            data[at] = source.randrange(256)
        (tmp_path / "x").write_bytes(data)
        try:
            found = read_batch(str(tmp_path / "x"))
        except ValueError:
            continue
        right += 1
        for value in found.values():
            assert type(value) in (
                int,
                str,
                list,
                np.ndarray,
                bytes,
                float,
                tuple,
                type(None),
                bool,
            )
    assert 0 < right < 300


def test_a_folder_of_images(tmp_path):
    for name in ("dog/b.png", "dog/inner/a.JPG", "cat/z.png", "cat/notes.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".txt":
            path.touch()
        else:
            Image.new("L", (4, 3), 100).save(path)
    found = datasets.ImageFolder(tmp_path, transforms.ToTensor())
    assert found.classes == ["cat", "dog"] and found.class_to_idx == {
        "cat": 0,
        "dog": 1,
    }
    names = [os.path.relpath(path, tmp_path) for path, _ in found.imgs]
    assert names == ["cat/z.png", "dog/b.png", "dog/inner/a.JPG"]
    assert (
        found.targets == [0, 1, 1]
        and found[0][0].shape == (3, 3, 4)
        and found[2][1] == 1
    )
    one = datasets.ImageFolder(
        tmp_path, is_valid_file=lambda p: "inner" in p, allow_empty=True
    )
    assert len(one) == 1 and one[0][0].size == (4, 3)
    with pytest.raises(FileNotFoundError, match="classes cat"):
        datasets.ImageFolder(tmp_path, is_valid_file=lambda p: "inner" in p)
    with pytest.raises(FileNotFoundError, match="no subfolders"):
        datasets.ImageFolder(tmp_path / "cat")
    with pytest.raises(ValueError, match="either"):
        datasets.DatasetFolder(tmp_path, open)


def test_fake_data_is_the_same_each_time():
    fake = datasets.FakeData(3, (3, 4, 5), 7, transforms.PILToTensor(), random_offset=2)
    torch.manual_seed(0)
    before = torch.get_rng_state()
    (x, y), (again, _) = fake[1], fake[1]
    assert torch.equal(before, torch.get_rng_state())
    assert torch.equal(x, again) and 0 <= y < 7 and x.shape == (3, 4, 5)
    torch.manual_seed(3)
    drawn = torch.randn(3, 4, 5)
    assert (
        torch.equal(x, drawn.mul(255).to(torch.uint8))
        and y == torch.randint(0, 7, (1,)).item()
    )
    assert len(list(fake)) == 3
    with pytest.raises(IndexError):
        fake[3]


def test_how_a_data_set_is_shown(tmp_path):
    write_mnist(tmp_path)
    shown = transforms.Compose([transforms.ToTensor(), transforms.Normalize(0.5, 0.5)])
    data = datasets.MNIST(
        str(tmp_path), transform=shown, target_transform=transforms.Lambda(int)
    )
    assert (
        repr(data)
        == f"""Dataset MNIST
    Number of datapoints: 5
    Root location: {tmp_path}
    Split: Train
    StandardTransform
    Transform: Compose(
                   ToTensor()
                   Normalize(mean=0.5, std=0.5)
               )
    Target transform: Lambda()"""
    )
