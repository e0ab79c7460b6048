"""Transforms of pictures beside Pillow and PyTorch: conversions, geometry, colors, chances."""

import pickle
import random

import numpy as np
import pytest
from pictures import as_image, counted

import pydevtensor as torch
from pydevtensor import nn
from pydevtensor.vision import io as vision_io
from pydevtensor.vision import transforms, utils
from pydevtensor.vision.transforms import InterpolationMode
from pydevtensor.vision.transforms import functional as TF

Image = pytest.importorskip("PIL.Image")


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
