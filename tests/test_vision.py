"""Grids, files and boxes of pictures, and the names of torchvision."""

import io

import pytest
from isolated import python
from pictures import as_image, counted

import pydevtensor as torch
from pydevtensor.vision import io as vision_io
from pydevtensor.vision import ops, utils

Image = pytest.importorskip("PIL.Image")


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
