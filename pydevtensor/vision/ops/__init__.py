"""Operations on boxes, which are (x1, y1, x2, y2), and a layer."""

from __future__ import annotations

from typing import Any

import pydevtensor as torch
from pydevtensor._names import publish as _publish
from pydevtensor.vision.ops.misc import FrozenBatchNorm2d

__all__ = ["FrozenBatchNorm2d", "box_area", "box_iou", "nms", "roi_pool"]


def box_area(boxes: Any) -> Any:
    """The areas of boxes (N, 4).

    >>> torch.vision.ops.box_area(torch.tensor([[0.0, 0.0, 2.0, 3.0]]))
    tensor([6.])
    """
    return (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])


def box_iou(boxes1: Any, boxes2: Any) -> Any:
    """The common area of each two boxes, divided by that of both together, (N, M).

    >>> box = torch.tensor([[0.0, 0.0, 2.0, 2.0]])
    >>> torch.vision.ops.box_iou(box, box + torch.tensor([1.0, 0.0, 1.0, 0.0]))
    tensor([[0.3333]])
    """
    top_left = torch.maximum(boxes1[:, None, :2], boxes2[:, :2])
    bottom_right = torch.minimum(boxes1[:, None, 2:], boxes2[:, 2:])
    sides = (bottom_right - top_left).clamp(min=0)
    common = sides[:, :, 0] * sides[:, :, 1]
    return common / (box_area(boxes1)[:, None] + box_area(boxes2) - common)


def nms(boxes: Any, scores: Any, iou_threshold: float) -> Any:
    """The indices of boxes that no better one overlaps by more, the best first.

    >>> boxes = torch.tensor([[0.0, 0.0, 2.0, 2.0], [0.0, 0.0, 2.0, 1.9]])
    >>> torch.vision.ops.nms(boxes, torch.tensor([0.5, 0.9]), 0.5)
    tensor([1])
    """
    order = scores.argsort(descending=True, stable=True)
    overlaps = (box_iou(boxes, boxes) > iou_threshold).cpu()
    kept: list[int] = []
    left = torch.ones(len(boxes), dtype=torch.bool)
    for i in order.tolist():
        if left[i]:
            kept.append(i)
            left &= ~overlaps[i]
    return torch.tensor(kept, dtype=torch.int64, device=boxes.device)


def roi_pool(
    input: Any, boxes: Any, output_size: Any, spatial_scale: float = 1.0
) -> Any:
    """The maxima of a grid of output_size bins in each region of the input.

    input: (N, C, H, W). boxes: (K, 5) with the number of the input first, or a list of
    (L, 4), one for each input. They are multiplied by spatial_scale and rounded. The
    result is (K, C, *output_size); bins without pixels are 0.

    >>> x = torch.arange(16.0).reshape(1, 1, 4, 4)
    >>> torch.vision.ops.roi_pool(x, torch.tensor([[0.0, 0.0, 0.0, 3.0, 3.0]]), (2, 2))
    tensor([[[[ 5.,  7.],
              [13., 15.]]]])
    """
    if isinstance(boxes, list | tuple):
        numbered = [
            torch.cat([torch.full_like(b[:, :1], i), b], 1) for i, b in enumerate(boxes)
        ]
        boxes = torch.cat(numbered)
    high, wide = (
        (output_size, output_size) if isinstance(output_size, int) else output_size
    )
    h, w = input.shape[-2:]
    regions = []
    for number, *corners in boxes.detach().cpu().tolist():
        x1, y1, x2, y2 = (int(c * spatial_scale + 0.5) for c in corners)
        rows = _bins(y1, max(y2 - y1 + 1, 1), high, h)
        columns = _bins(x1, max(x2 - x1 + 1, 1), wide, w)
        image = input[int(number)]
        bins = [
            image[:, top:bottom, left:right].amax((1, 2))
            if bottom > top and right > left
            else image.new_zeros(image.shape[0])
            for top, bottom in rows
            for left, right in columns
        ]
        regions.append(torch.stack(bins, 1).reshape(-1, high, wide))
    if not regions:
        return input.new_empty((0, input.shape[1], high, wide))
    return torch.stack(regions)


def _bins(start: int, size: int, count: int, limit: int) -> list[tuple[int, int]]:
    """The limits of bins, which may overlap by a pixel, cut to the image."""
    edges = []
    for i in range(count):
        first = start + i * size // count
        last = start - -(i + 1) * size // count
        edges.append((min(max(first, 0), limit), min(max(last, 0), limit)))
    return edges


_publish(__name__)
