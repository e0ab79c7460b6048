"""pydevtensor.vision: data sets, transforms, utils, models."""

import gzip
import io
import math
import os
import pickle
import random
import struct

import numpy as np
import pytest
from isolated import python

import pydevtensor as torch
from pydevtensor import nn
from pydevtensor.vision import datasets, models, ops, transforms, utils
from pydevtensor.vision import io as vision_io
from pydevtensor.vision.transforms import InterpolationMode
from pydevtensor.vision.transforms import functional as TF

Image = pytest.importorskip("PIL.Image")


def counted(*shape):
    """An image of uint8 with different values."""
    n = math.prod(shape)
    return (torch.arange(n) * 7 % 256).to(torch.uint8).reshape(shape)


def as_image(x):
    return TF.to_pil_image(x)


# --- data sets ----------------------------------------------------------------------


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


# --- conversions --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "dtype", "channels"),
    [("L", "uint8", 1), ("RGB", "uint8", 3), ("RGBA", "uint8", 4), ("LA", "uint8", 2)]
    + [("I", "int32", 1), ("F", "float32", 1)],
)
def test_images_and_back(mode, dtype, channels):
    x = counted(channels, 3, 5).to(getattr(torch, dtype))
    image = TF.to_pil_image(x, mode)
    assert image.mode == mode and image.size == (5, 3)
    assert TF.get_dimensions(image) == TF.get_dimensions(x) == [channels, 3, 5]
    assert torch.equal(TF.pil_to_tensor(image), x)
    y = transforms.ToTensor()(image)
    assert y.dtype is (torch.float32 if dtype != "int32" else torch.int32)
    assert torch.equal(y, x / 255 if dtype == "uint8" else x)


def test_arrays_become_tensors_and_images():
    values = counted(3, 4, 5).permute(1, 2, 0).numpy()
    assert torch.equal(TF.to_tensor(values), counted(3, 4, 5) / 255)
    assert TF.to_tensor(values[:, :, 0]).shape == (1, 4, 5)
    assert TF.to_tensor(values.astype(np.float64)).dtype is torch.float64
    assert TF.to_pil_image(values).mode == "RGB"
    assert TF.to_pil_image(values[:, :, 0].copy()).mode == "L"
    assert TF.to_pil_image(torch.rand(4, 5)).size == (5, 4)
    assert np.array(TF.to_pil_image(torch.tensor([[0.0, 0.999, 1.0]]))).tolist() == [
        [0, 254, 255]
    ]
    bits = Image.new("1", (2, 2), 1)
    assert (
        TF.pil_to_tensor(bits).unique().tolist() == [255]
        and TF.to_tensor(bits).max() == 1
    )
    torch.set_default_dtype(torch.float64)
    assert TF.to_tensor(values).dtype is torch.float64


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: TF.to_tensor([1]), TypeError),
        (lambda: TF.to_tensor(torch.ones(3, 2, 2)), TypeError),
        (lambda: TF.to_tensor(np.ones(3)), ValueError),
        (lambda: TF.pil_to_tensor(np.ones((2, 2))), TypeError),
        (lambda: TF.to_pil_image("x"), TypeError),
        (lambda: TF.to_pil_image(torch.ones(3)), ValueError),
        (lambda: TF.to_pil_image(torch.ones(5, 2, 2)), ValueError),
        (lambda: TF.to_pil_image(torch.ones(3, 2, 2), "L"), ValueError),
        (lambda: TF.to_pil_image(torch.ones(3, 2, 2, dtype=torch.int64)), TypeError),
        (lambda: TF.normalize(Image.new("L", (2, 2)), 0, 1), TypeError),
        (lambda: TF.normalize(counted(1, 2, 2), [0], [1]), TypeError),
        (lambda: TF.normalize(torch.ones(2, 2), [0], [1]), ValueError),
        (lambda: TF.normalize(torch.ones(1, 2, 2), [0], [0]), ValueError),
        (lambda: TF.convert_image_dtype(torch.ones(1), torch.int64), RuntimeError),
        (lambda: TF.get_dimensions(3), TypeError),
        (lambda: TF.get_dimensions(torch.ones(3)), TypeError),
        (lambda: TF.hflip("x"), TypeError),
        (lambda: TF.pad(torch.ones(1, 2, 2), [1, 2, 3]), ValueError),
        (lambda: TF.pad(torch.ones(1, 2, 2), 1, padding_mode="other"), ValueError),
        (lambda: TF.resize(torch.ones(1, 2, 2), [1, 2, 3]), ValueError),
        (lambda: TF.resize(torch.ones(1, 2, 2), 3, max_size=2), ValueError),
        (lambda: TF.resize(torch.ones(1, 2, 2), 3, InterpolationMode.BOX), ValueError),
        (lambda: TF.resize(torch.ones(1, 2, 2), 3, "bilinear"), TypeError),
        (lambda: TF.rotate(torch.ones(1, 2, 2), 3, InterpolationMode.BILINEAR), ValueError),
        (lambda: TF.adjust_hue(torch.ones(3, 2, 2), 0.6), ValueError),
        (lambda: TF.adjust_brightness(torch.ones(3, 2, 2), -1), ValueError),
        (lambda: TF.adjust_contrast(torch.ones(2, 2, 2), 1), TypeError),
        (lambda: TF.rgb_to_grayscale(torch.ones(3, 2, 2), 2), ValueError),
        (lambda: TF.to_grayscale(torch.ones(3, 2, 2)), TypeError),
        (lambda: TF.five_crop(torch.ones(3, 2, 2), 3), ValueError),
        (lambda: transforms.RandomCrop(3)(torch.ones(3, 2, 2)), ValueError),
        (lambda: transforms.RandomRotation(-3), ValueError),
        (lambda: transforms.ColorJitter(brightness=-1), ValueError),
        (lambda: transforms.ColorJitter(hue=0.7), ValueError),
        (lambda: transforms.ColorJitter(contrast=(2, 1)), ValueError),
        (lambda: transforms.Lambda(3), TypeError),
        (lambda: transforms.CenterCrop((1, 2, 3)), ValueError),
        (lambda: utils.make_grid(3), TypeError),
        (lambda: utils.make_grid(torch.ones(3)), ValueError),
        (lambda: utils.make_grid(torch.ones(3, 2, 2), value_range=[0, 1]), TypeError),
        (lambda: vision_io.write_png(torch.ones(3, 2, 2), "x.png"), RuntimeError),
        (lambda: vision_io.decode_image(torch.ones(3)), RuntimeError),
    ],
)  # fmt: skip
def test_what_is_no_image(call, error):
    with pytest.raises(error):
        call()


def test_element_types_keep_the_range():
    eight = torch.tensor([0, 1, 254, 255], dtype=torch.uint8)
    for kind in (torch.float32, torch.float64):
        assert torch.equal(TF.convert_image_dtype(eight, kind), eight.to(kind) / 255)
        assert torch.equal(
            TF.convert_image_dtype(eight.to(kind) / 255, torch.uint8), eight
        )
    wide = TF.convert_image_dtype(eight, torch.int32)
    assert wide.tolist() == [0, 1 << 23, 254 << 23, 255 << 23]
    assert torch.equal(TF.convert_image_dtype(wide, torch.uint8), eight)
    assert transforms.ConvertImageDtype(torch.uint8)(eight) is eight
    assert (
        TF.convert_image_dtype(torch.tensor([0.5]), torch.float64).dtype
        is torch.float64
    )


def test_normalize(device):
    x = torch.rand(2, 3, 4, 5, device=device)
    mean, std = [0.1, 0.2, 0.3], [0.5, 0.25, 2.0]
    y = transforms.Normalize(mean, std)(x)
    shape = 1, 3, 1, 1
    expected = (x - torch.tensor(mean, device=device).view(shape)) / torch.tensor(
        std, device=device
    ).view(shape)
    assert torch.equal(y, expected)
    assert TF.normalize(x, mean, std, inplace=True) is x and torch.equal(x, y)


# --- geometry -----------------------------------------------------------------------

MOVES = [
    lambda i: TF.hflip(i),
    lambda i: TF.vflip(i),
    lambda i: TF.crop(i, 1, 2, 2, 3),
    lambda i: TF.crop(i, -1, 3, 4, 4),
    lambda i: TF.center_crop(i, (2, 3)),
    lambda i: TF.center_crop(i, 3),
    lambda i: TF.center_crop(i, (8, 3)),
    lambda i: TF.center_crop(i, (7, 9)),
    lambda i: TF.pad(i, 1),
    lambda i: TF.pad(i, (1, 2), 7),
    lambda i: TF.pad(i, [1, 0, 2, 3], padding_mode="edge"),
    lambda i: TF.pad(i, 2, padding_mode="reflect"),
    lambda i: TF.pad(i, [3, 1], padding_mode="symmetric"),
    lambda i: TF.five_crop(i, 2)[3],
    lambda i: TF.rotate(i, 90, expand=True),
    lambda i: TF.rotate(i, 180),
    lambda i: TF.resize(i, (2, 3), InterpolationMode.NEAREST_EXACT),
    lambda i: TF.invert(i),
]


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("move", MOVES)
def test_tensors_and_images_move_alike(move, channels, device):
    x = counted(channels, 4, 6)
    expected = TF.pil_to_tensor(move(as_image(x)))
    moved = move(x.to(device))
    assert moved.dtype is torch.uint8 and moved.device == torch.device(device)
    assert torch.equal(moved.cpu(), expected)


def test_batches_move_as_images_do():
    x = torch.rand(2, 3, 4, 6)
    for move in (
        *MOVES[:14],
        lambda i: TF.resize(i, (3, 5)),
        lambda i: TF.rotate(i, 30),
    ):
        assert torch.allclose(move(x)[1], move(x[1]), atol=1e-6)


def test_pad_with_a_color_and_with_less_than_nothing():
    x = torch.ones(3, 1, 1)
    assert TF.pad(x, [1, 0], [5, 6, 7])[:, 0].tolist() == [
        [5, 1, 5],
        [6, 1, 6],
        [7, 1, 7],
    ]
    y = counted(1, 4, 4)
    assert torch.equal(TF.pad(y, [-1, -2, 0, -1]), y[:, 2:3, 1:])
    assert torch.equal(TF.pad(y, [1, -1, 0, 0])[:, :, 1:], y[:, 1:])


def test_rotate():
    x = counted(1, 5, 5).float()
    for turns in range(4):
        assert torch.equal(TF.rotate(x, 90 * turns), x.rot90(turns, (1, 2)))
    assert torch.equal(TF.rotate(x, -90), TF.rotate(x, 270))
    assert torch.equal(TF.rotate(x, 90, center=(2.5, 2.5)), TF.rotate(x, 90))
    y = TF.rotate(x + 1, 45, fill=9.0)
    assert y[0, 0, 0] == 9 and y[0, 2, 2] == x[0, 2, 2] + 1
    assert TF.rotate(x, 45, expand=True).shape == (1, 8, 8)
    mine = TF.rotate(counted(1, 9, 9), 30)
    image = TF.pil_to_tensor(TF.rotate(as_image(counted(1, 9, 9)), 30))
    assert (mine == image).float().mean() > 0.8


# What PyTorch's interpolate() makes of one row of squares.
SQUARES = [
    ("bilinear", True, 3, [1.0, 7.0, 18.857143]),
    ("bilinear", True, 4, [0.37500003, 3.5555556, 10.777778, 21.625]),
    ("bilinear", True, 8, [0.0, 0.625, 2.125, 4.625, 8.375, 13.375, 19.375, 25.0]),
    ("bilinear", False, 3, [0.5, 6.5, 20.5]),
    ("bilinear", False, 4, [0.25, 3.25, 10.75, 22.75]),
    ("bilinear", False, 8, [0.0, 0.625, 2.125, 4.625, 8.375, 13.375, 19.375, 25.0]),
    ("bicubic", True, 3, [0.41004187, 6.5305343, 19.970711]),
    ("bicubic", True, 4, [0.15857436, 2.9770288, 10.886677, 22.27832]),
    (
        "bicubic",
        True,
        8,
        [
            -0.052238807,
            0.4162769,
            1.890625,
            4.515625,
            8.265625,
            13.140625,
            19.850327,
            25.47015,
        ],
    ),
    ("bicubic", False, 3, [0.21875, 6.125, 21.15625]),
    ("bicubic", False, 4, [0.12109375, 2.828125, 10.796875, 23.207031]),
    (
        "bicubic",
        False,
        8,
        [
            -0.071777344,
            0.31005859,
            1.8613281,
            4.6660156,
            8.0058594,
            12.818359,
            20.012207,
            25.645996,
        ],
    ),
    ("nearest", True, 4, [0.0, 1.0, 9.0, 16.0]),
    ("nearest", True, 8, [0.0, 0.0, 1.0, 4.0, 9.0, 9.0, 16.0, 25.0]),
    ("nearest-exact", True, 4, [0.0, 4.0, 9.0, 25.0]),
    ("nearest-exact", True, 8, [0.0, 1.0, 1.0, 4.0, 9.0, 16.0, 16.0, 25.0]),
]


@pytest.mark.parametrize(("mode", "antialias", "size", "expected"), SQUARES)
def test_resize_is_pytorch_s(mode, antialias, size, expected, device):
    x = torch.arange(6.0, device=device).square().view(1, 1, 6)
    y = TF.resize(x, (1, size), InterpolationMode(mode), antialias=antialias)
    assert torch.allclose(y.flatten().cpu(), torch.tensor(expected), atol=1e-5)


def test_resize_keeps_what_is_linear(device):
    """Straight lines stay straight between the outermost pixels, and constants constant."""
    x = torch.arange(12.0, device=device).expand(2, 5, 12)
    for mode in (InterpolationMode.BILINEAR, InterpolationMode.BICUBIC):
        for antialias in (True, False):
            y = TF.resize(x, (3, 6), mode, antialias=antialias)
            assert y.shape == (2, 3, 6) and y.device == x.device
            line = torch.arange(6.0, device=device) * 2 + 0.5
            assert torch.allclose(y[..., 2:-2], line[2:-2].expand(2, 3, 2), atol=1e-5)
            constant = TF.resize(
                torch.full_like(x, 3.0), (7, 31), mode, antialias=antialias
            )
            assert torch.allclose(constant, torch.full_like(constant, 3.0), atol=1e-5)


def test_resize_by_lanczos_is_interpolate_s(device):
    x = counted(2, 9, 14).to(device).float()
    for size in ((4, 5), (20, 17), (1, 1), (9, 7)):
        wanted = torch.nn.functional.interpolate(
            x[None], size, mode="lanczos", antialias=True
        )
        for antialias in (True, False, None):
            y = TF.resize(x, size, InterpolationMode.LANCZOS, antialias=antialias)
            assert y.device == x.device
            assert torch.allclose(y, wanted[0], rtol=1e-5, atol=1e-4)
    x = torch.rand(1, 4, 5, dtype=torch.float64, device=device, requires_grad=True)
    mode = InterpolationMode.LANCZOS
    assert torch.autograd.gradcheck(lambda x: TF.resize(x, (3, 7), mode), x)


def test_resize_is_pillow_s():
    """Values of 8 bits differ from Pillow's by rounding alone."""
    x = counted(3, 9, 14) // 2 + 64  # what the filters make of it needs no limit
    for mode in (
        InterpolationMode.BILINEAR,
        InterpolationMode.BICUBIC,
        InterpolationMode.LANCZOS,
    ):
        for size in ((4, 5), (20, 17), (9, 7)):
            y = TF.resize(x, size, mode)
            image = TF.pil_to_tensor(TF.resize(as_image(x), size, mode))
            assert y.dtype is torch.uint8 and y.shape == image.shape
            assert (y.int() - image.int()).abs().max() <= 1
            exact = TF.resize(x.double(), size, mode)
            assert (exact.clamp(0, 255) - image).abs().max() <= 1.01


def test_sizes_of_resize():
    for x in (torch.ones(3, 20, 30), as_image(counted(3, 20, 30))):
        for size, shape in ((10, [10, 15]), ([10], [10, 15]), ((10, 10), [10, 10])):
            assert TF.get_dimensions(TF.resize(x, size))[1:] == shape
        assert TF.get_dimensions(TF.resize(x, 10, max_size=12))[1:] == [8, 12]
        assert TF.resize(x, (20, 30)) is x and TF.resize(x, 20) is x
    assert TF.get_dimensions(TF.resize(torch.ones(3, 30, 20), 10))[1:] == [15, 10]
    assert TF.resize(torch.ones(1, 4, 4), 2, 2).shape == (1, 2, 2)  # Pillow's number
    x = torch.rand(3, 4, 5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: TF.resize(x, (3, 7)), x)


# --- colors -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("adjust", "factors", "tolerance"),
    [
        (TF.adjust_brightness, (0, 0.5, 1, 1.7), 1),
        (TF.adjust_contrast, (0, 0.5, 1, 1.7), 2),
        (TF.adjust_saturation, (0, 0.5, 1, 1.7), 2),
        (TF.adjust_hue, (-0.5, -0.1, 0, 0.25, 0.5), 8),
    ],
)
def test_colors_are_pillow_s(adjust, factors, tolerance, device):
    x = counted(3, 8, 9)
    for factor in factors:
        image = TF.pil_to_tensor(adjust(as_image(x), factor)).int()
        mine = adjust(x.to(device), factor).cpu()
        assert mine.dtype is torch.uint8
        assert (mine.int() - image).abs().max() <= tolerance, factor
        floats = adjust(x.to(device) / 255, factor).cpu() * 255
        assert (floats - image).abs().max() <= tolerance + 1, factor


def test_gray():
    x = counted(3, 4, 5)
    image = TF.pil_to_tensor(TF.rgb_to_grayscale(as_image(x)))
    assert (TF.rgb_to_grayscale(x).int() - image.int()).abs().max() <= 1
    three = transforms.Grayscale(3)(x)
    assert three.shape == (3, 4, 5) and torch.equal(three[0], three[2])
    assert transforms.Grayscale(3)(as_image(x)).mode == "RGB"
    one = counted(1, 2, 2)
    assert torch.equal(TF.rgb_to_grayscale(one), one)
    for adjust in (TF.adjust_hue, TF.adjust_saturation):
        assert adjust(one, 0.5) is one


# --- random transforms --------------------------------------------------------------


def seeded(transform, x, seed=1):
    torch.manual_seed(seed)
    return transform(x)


@pytest.mark.parametrize("seed", range(6))
def test_what_random_transforms_draw(seed):
    """The draws are in the order that the docstrings name."""
    x = counted(3, 12, 10)
    torch.manual_seed(seed)
    flips = torch.rand(1).item() < 0.5
    expected = TF.hflip(x) if flips else x
    assert torch.equal(seeded(transforms.RandomHorizontalFlip(), x, seed), expected)
    expected = TF.vflip(x) if flips else x
    assert torch.equal(seeded(transforms.RandomVerticalFlip(), x, seed), expected)
    torch.manual_seed(seed)
    top, left = torch.randint(0, 6, (1,)).item(), torch.randint(0, 7, (1,)).item()
    expected = x[:, top : top + 7, left : left + 4]
    assert torch.equal(seeded(transforms.RandomCrop((7, 4)), x, seed), expected)
    torch.manual_seed(seed)
    angle = torch.empty(1).uniform_(-20, 20).item()
    assert torch.equal(
        seeded(transforms.RandomRotation(20), x, seed), TF.rotate(x, angle)
    )
    torch.manual_seed(seed)
    order = torch.randperm(4).tolist()
    factors = [
        torch.empty(1).uniform_(*limits).item() for limits in ((0.5, 1.5), (-0.1, 0.1))
    ]
    y = x
    for i in order:
        if i == 1:
            y = TF.adjust_contrast(y, factors[0])
        elif i == 3:
            y = TF.adjust_hue(y, factors[1])
    assert torch.equal(
        seeded(transforms.ColorJitter(contrast=0.5, hue=0.1), x, seed), y
    )
    torch.manual_seed(seed)
    expected = -x.int() if torch.rand(1).item() <= 0.5 else x.int()
    assert torch.equal(
        seeded(transforms.RandomApply([torch.neg]), x.int(), seed), expected
    )


def test_random_parts_have_the_area_and_the_aspect():
    x = torch.ones(3, 40, 50)
    torch.manual_seed(0)
    for _ in range(200):
        top, left, h, w = transforms.RandomResizedCrop.get_params(
            x, (0.2, 0.4), (0.5, 2.0)
        )
        assert 0 <= top <= 40 - h and 0 <= left <= 50 - w
        assert 0.15 < h * w / 2000 < 0.45 and 0.4 < w / h < 2.3
    wide = transforms.RandomResizedCrop.get_params(
        torch.ones(3, 2, 100), (1, 1), (0.5, 2.0)
    )
    tall = transforms.RandomResizedCrop.get_params(
        torch.ones(3, 100, 2), (1, 1), (0.5, 2.0)
    )
    assert wide == (0, 48, 2, 4) and tall == (48, 0, 4, 2)
    assert transforms.RandomResizedCrop((4, 6))(x).shape == (3, 4, 6)


def test_random_crops_with_borders():
    x = counted(3, 4, 4)
    assert transforms.RandomCrop(4, padding=4)(x).shape == (3, 4, 4)
    assert transforms.RandomCrop((9, 6), pad_if_needed=True)(x).shape == (3, 9, 6)
    assert transforms.RandomCrop((9, 6), pad_if_needed=True)(as_image(x)).size == (6, 9)


def test_chances():
    x = torch.ones(3, 2, 2)
    random.seed(0)
    halves = [
        transforms.RandomChoice([torch.neg, torch.abs], p=[1, 3])(x)[0, 0, 0].item()
        for _ in range(400)
    ]
    assert 60 < halves.count(-1) < 140
    once = transforms.RandomOrder([lambda v: [*v, 1], lambda v: [*v, 2]])
    assert {tuple(once([])) for _ in range(50)} == {(1, 2), (2, 1)}
    assert transforms.RandomGrayscale(p=0.0)(x) is x
    assert transforms.RandomApply([torch.neg], p=0.0)(x) is x


def test_transforms_compose():
    augment = transforms.Compose(
        [
            transforms.Resize(12),
            transforms.RandomResizedCrop(8, (0.5, 1)),
            transforms.RandomHorizontalFlip(),
            transforms.ColorJitter(0.4, 0.4, 0.4, 0.1),
            transforms.RandomRotation(10),
            transforms.RandomGrayscale(0.5),
            transforms.ToTensor(),
            transforms.Normalize([0.5] * 3, [0.25] * 3),
        ]
    )
    image = as_image(counted(3, 16, 20))
    assert torch.equal(seeded(augment, image), seeded(augment, image))
    assert seeded(augment, image).shape == (3, 8, 8)
    tensors = nn.Sequential(
        transforms.CenterCrop(4), transforms.Normalize([0.5], [0.5])
    )
    assert tensors(torch.ones(2, 1, 8, 8)).shape == (2, 1, 4, 4)
    again = pickle.loads(pickle.dumps(augment))
    assert torch.equal(seeded(again, image), seeded(augment, image))


def test_how_transforms_are_shown():
    shown = [
        (transforms.Resize(3), "Resize(size=3, interpolation=bilinear, max_size=None, antialias=True)"),
        (transforms.CenterCrop(3), "CenterCrop(size=(3, 3))"),
        (transforms.RandomCrop(3, 1), "RandomCrop(size=(3, 3), padding=1)"),
        (transforms.RandomHorizontalFlip(), "RandomHorizontalFlip(p=0.5)"),
        (transforms.Normalize([0], [1]), "Normalize(mean=[0], std=[1])"),
        (transforms.Pad(2), "Pad(padding=2, fill=0, padding_mode=constant)"),
        (transforms.Grayscale(), "Grayscale(num_output_channels=1)"),
        (transforms.ToPILImage("L"), "ToPILImage(mode=L)"),
        (transforms.RandomRotation(5), "RandomRotation(degrees=[-5.0, 5.0], interpolation=nearest, expand=False, fill=0)"),
        (transforms.ColorJitter(0.5), "ColorJitter(brightness=(0.5, 1.5), contrast=None, saturation=None, hue=None)"),
        (transforms.RandomResizedCrop(3), "RandomResizedCrop(size=(3, 3), scale=(0.08, 1.0), ratio=(0.75, 1.3333), interpolation=bilinear, antialias=True)"),
        (transforms.RandomApply([transforms.ToTensor()]), "RandomApply(\n    p=0.5\n    ToTensor()\n)"),
    ]  # fmt: skip
    for transform, text in shown:
        assert repr(transform) == text


# --- utils, io, ops -----------------------------------------------------------------


def test_a_grid(device):
    x = torch.rand(5, 3, 2, 4, device=device)
    grid = utils.make_grid(x, nrow=3, padding=1, pad_value=7.0)
    assert grid.shape == (3, 7, 16) and grid.device == x.device
    assert torch.equal(grid[:, 4:6, 6:10], x[4]) and torch.equal(
        grid[:, 1:3, 11:15], x[2]
    )
    assert (
        (grid[:, 0] == 7).all()
        and (grid[:, :, 15] == 7).all()
        and (grid[:, 4:6, 11:] == 7).all()
    )
    assert utils.make_grid(x[:, :1])[2].equal(utils.make_grid(x[:, :1])[0])
    assert utils.make_grid(x[0, 0]).shape == (3, 2, 4)
    assert utils.make_grid([*x]).equal(utils.make_grid(x))
    spread = utils.make_grid(x * 9 - 4, normalize=True, padding=0)
    assert spread.min() == 0 and spread.max() == 1
    each = utils.make_grid(x, normalize=True, scale_each=True, padding=0)
    assert each[:, :, :4].max() == 1 and each[:, :, 4:8].max() == 1
    limited = utils.make_grid(x, normalize=True, value_range=(0.0, 0.5), padding=0)
    assert torch.allclose(limited[:, :, :4], (x[0] / 0.5).clamp(0, 1))


def test_images_in_files(tmp_path):
    x = counted(3, 4, 6)
    vision_io.write_png(x, tmp_path / "x.png")
    assert torch.equal(vision_io.read_image(tmp_path / "x.png"), x)
    mode = vision_io.image.ImageReadMode
    assert vision_io.read_image(str(tmp_path / "x.png"), mode=mode.GRAY).shape == (
        1,
        4,
        6,
    )
    assert vision_io.read_image(tmp_path / "x.png", mode.RGB_ALPHA).shape == (4, 4, 6)
    data = torch.frombuffer(
        bytearray((tmp_path / "x.png").read_bytes()), dtype=torch.uint8
    )
    assert torch.equal(vision_io.decode_image(data, "RGB"), x)
    vision_io.write_jpeg(x, tmp_path / "x.jpg", quality=90)
    assert vision_io.read_image(tmp_path / "x.jpg").shape == x.shape
    as_image(x).quantize(8).save(tmp_path / "p.png")
    assert vision_io.read_image(tmp_path / "p.png").shape == x.shape
    utils.save_image(torch.tensor([[[-1.0, 0.5, 2.0]]]), tmp_path / "g.png")
    assert (
        vision_io.read_image(tmp_path / "g.png")[:, 0].tolist() == [[0, 128, 255]] * 3
    )
    file = io.BytesIO()
    utils.save_image(torch.rand(4, 1, 5, 5), file, format="png", nrow=2)
    assert Image.open(file).size == (16, 16)


def test_regions(device):
    x = torch.arange(16.0, device=device).reshape(1, 1, 4, 4)
    rois = torch.tensor([[0.0, 0, 0, 20, 20], [0, 0, 10, 30, 30]], device=device)
    pooled = ops.roi_pool(x, rois, output_size=(2, 2), spatial_scale=0.1)
    assert pooled[:, 0].tolist() == [[[5, 6], [9, 10]], [[9, 11], [13, 15]]]
    assert torch.equal(ops.roi_pool(x, [rois[:, 1:]], 2, 0.1), pooled)
    assert ops.roi_pool(x, rois[:0], 2).shape == (0, 1, 2, 2)
    outside = torch.tensor([[0.0, 9, 9, 12, 12]], device=device)
    assert ops.roi_pool(x, outside, 2).abs().sum() == 0
    y = torch.rand(2, 2, 5, 5, dtype=torch.float64, device=device, requires_grad=True)
    boxes = torch.tensor([[1.0, 0, 1, 3, 4]], device=device)
    assert torch.autograd.gradcheck(lambda y: ops.roi_pool(y, boxes, 2), y)


def test_boxes(device):
    boxes = torch.tensor(
        [[0.0, 0, 10, 10], [1, 1, 11, 11], [20, 20, 30, 30], [0, 0, 10, 9]],
        device=device,
    )
    scores = torch.tensor([0.9, 0.8, 0.7, 0.95], device=device)
    assert ops.box_area(boxes).tolist() == [100, 100, 100, 90]
    iou = ops.box_iou(boxes, boxes)
    assert torch.allclose(iou.diag().cpu(), torch.ones(4)) and iou[0, 2] == 0
    assert abs(iou[0, 1].item() - 81 / 119) < 1e-6
    assert ops.nms(boxes, scores, 0.5).tolist() == [3, 2]
    assert ops.nms(boxes, scores, 0.65).tolist() == [3, 1, 2]
    assert ops.nms(boxes[:0], scores[:0], 0.5).tolist() == []


def test_without_pillow(tmp_path):
    out = python("""
import sys
sys.modules["PIL"] = None
import pydevtensor as torch
from pydevtensor.vision import transforms, utils, datasets
x = torch.rand(3, 8, 8)
transforms.Compose([transforms.Resize(4), transforms.RandomCrop(2), transforms.RandomHorizontalFlip()])(x)
utils.make_grid(torch.rand(3, 3, 4, 4))
try:
    transforms.ToPILImage()(x)
except ImportError as error:
    print(error)
""")
    assert "images need Pillow" in out and "pip install pillow" in out


def test_under_its_other_name():
    out = python("""
import pydevtensor
pydevtensor.install_as_torch()
import torchvision
from torchvision import transforms, datasets
from torchvision.transforms import functional as TF
import torchvision.transforms as T
from torchvision.io.image import ImageReadMode
assert torchvision is pydevtensor.vision and T is pydevtensor.vision.transforms
assert TF is transforms.functional and datasets is pydevtensor.vision.datasets
for statement in ("torchvision.prototype", "import torchvision.prototype"):
    try:
        exec(statement)
    except (AttributeError, ImportError) as error:
        print(type(error).__name__, error)
print(torchvision.__version__)
""")
    first, second, third = out.splitlines()
    assert "AttributeError pydevtensor.vision has no 'prototype'" in first
    assert "ModuleNotFoundError" in second and "torchvision.prototype" in second
    assert third.startswith("0.28.0")


# --- models -------------------------------------------------------------------------

# The numbers of parameters and of entries of the state_dict() of torchvision's models.
MODELS = [
    ("resnet18", 11_689_512, 122),
    ("resnet34", 21_797_672, 218),
    ("resnet50", 25_557_032, 320),
    ("squeezenet1_0", 1_248_424, 52),
    ("squeezenet1_1", 1_235_496, 52),
    pytest.param("resnet101", 44_549_160, 626, marks=pytest.mark.slow),
    pytest.param("resnet152", 60_192_808, 932, marks=pytest.mark.slow),
    pytest.param("alexnet", 61_100_840, 16, marks=pytest.mark.slow),
    pytest.param("vgg11", 132_863_336, 22, marks=pytest.mark.slow),
    pytest.param("vgg13", 133_047_848, 26, marks=pytest.mark.slow),
    pytest.param("vgg16", 138_357_544, 32, marks=pytest.mark.slow),
    pytest.param("vgg19", 143_667_240, 38, marks=pytest.mark.slow),
    pytest.param("vgg11_bn", 132_868_840, 62, marks=pytest.mark.slow),
    pytest.param("vgg13_bn", 133_053_736, 76, marks=pytest.mark.slow),
    pytest.param("vgg16_bn", 138_365_992, 97, marks=pytest.mark.slow),
    pytest.param("vgg19_bn", 143_678_248, 118, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("name", "parameters", "entries"), MODELS)
def test_a_model_has_torchvision_s_weights(name, parameters, entries):
    net = getattr(models, name)(**({"init_weights": False} if "vgg" in name else {}))
    assert sum(p.numel() for p in net.parameters()) == parameters
    assert len(net.state_dict()) == entries


def test_names_and_shapes_of_weights():
    shapes = {
        name: tuple(x.shape) for name, x in models.resnet50().state_dict().items()
    }
    for name, shape in {
        "conv1.weight": (64, 3, 7, 7),
        "bn1.running_mean": (64,),
        "layer1.0.downsample.0.weight": (256, 64, 1, 1),
        "layer1.0.downsample.1.num_batches_tracked": (),
        "layer2.0.conv2.weight": (128, 128, 3, 3),
        "layer4.2.bn3.bias": (2048,),
        "fc.weight": (1000, 2048),
    }.items():
        assert shapes[name] == shape
    squeezed = models.squeezenet1_1().state_dict()
    assert squeezed["features.12.expand3x3.weight"].shape == (256, 64, 3, 3)
    assert squeezed["classifier.1.weight"].shape == (1000, 512, 1, 1)


# What these modules give when PyTorch's layers build them after manual_seed(0): the sum of
# the parameters, and the result for torch.rand(2, 3, size, size) in eval().
ANSWERS = [
    (
        "resnet18",
        32,
        4731.0475,
        [[-0.055641, 0.014405, -0.0284837], [-0.0950582, 0.00524988, -0.0469435]],
    ),
    (
        "resnet50",
        32,
        26452.4813,
        [[1.31466, -1.02297, 0.289825], [1.18531, -0.93639, 0.468157]],
    ),
    (
        "squeezenet1_1",
        48,
        -93.0777,
        [[0.0728568, 0.0, 0.0284622], [0.0673674, 0.0, 0.0215292]],
    ),
    ("squeezenet1_0", 48, -145.6497, [[0.0, 0.0224298, 0.0], [0.0, 0.0192404, 0.0]]),
]


@pytest.mark.parametrize(("name", "size", "total", "expected"), ANSWERS)
def test_a_model_computes_as_in_pytorch(name, size, total, expected):
    torch.manual_seed(0)
    net = getattr(models, name)(num_classes=3)
    x = torch.rand(2, 3, size, size)
    assert abs(
        sum(p.double().sum() for p in net.parameters()).item() - total
    ) < 1e-3 * abs(total)
    net.eval()
    with torch.no_grad():
        y = net(x)
    assert torch.allclose(y, torch.tensor(expected), rtol=1e-3, atol=1e-4)


def test_a_model_learns(gpu):
    net = models.ResNet(models.BasicBlock, [1, 1, 1, 1], num_classes=2).to(gpu)
    x, y = torch.rand(2, 3, 32, 32, device=gpu), torch.tensor([0, 1], device=gpu)
    loss = nn.functional.cross_entropy(net(x), y)
    loss.backward()
    assert all(p.grad is not None for p in net.parameters())
    assert isinstance(net.layer2[0].downsample, nn.Sequential)
    zero = models.ResNet(models.Bottleneck, [1, 1, 1, 1], zero_init_residual=True)
    assert zero.layer3[0].bn3.weight.sum() == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["alexnet", "vgg11_bn"])
def test_large_models_compute(name):
    net = getattr(models, name)(num_classes=3).eval()
    with torch.no_grad():
        assert net(torch.rand(1, 3, 64, 64)).shape == (1, 3)


def test_weights_of_a_local_file(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    for options in ({"weights": "IMAGENET1K_V1"}, {"pretrained": True}):
        with pytest.raises(
            RuntimeError, match=r"squeezenet1_1-.*nothing from the network"
        ):
            models.squeezenet1_1(**options)
    folder = tmp_path / "hub" / "checkpoints"
    folder.mkdir(parents=True)
    net = models.squeezenet1_1()
    torch.save(net.state_dict(), folder / "squeezenet1_1-b8a52dc0.pth")
    again = models.squeezenet1_1(weights=models.SqueezeNet1_1_Weights.DEFAULT)
    assert torch.equal(again.classifier[1].weight, net.classifier[1].weight)
    (folder / "squeezenet1_1-other.pth").touch()
    with pytest.raises(RuntimeError, match="with one of them"):
        models.squeezenet1_1(weights="DEFAULT")
    assert models.ResNet50_Weights.DEFAULT is models.ResNet50_Weights.IMAGENET1K_V2
    with pytest.raises(ValueError, match="version"):
        models.SqueezeNet("2_0")
