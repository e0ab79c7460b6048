"""Masks of attention by blocks: which blocks of queries and keys count."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

from pydevtensor import _C
from pydevtensor._C import Tensor

_LISTS = tuple(
    f"{kind}_{what}"
    for kind in ("kv", "full_kv", "q", "full_q")
    for what in ("num_blocks", "indices")
)


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """The mask_mod that lets all pairs count: True.

    batch, head, token_q, token_kv: indices, Tensors without dimensions.

    >>> i = torch.tensor(0)
    >>> nn.attention.flex_attention.noop_mask(i, i, i, i)
    tensor(True)
    """
    return batch.new_ones((), dtype=_C.bool)


def _of_a_part(*indices: Any) -> Any:
    raise RuntimeError(
        "a BlockMask made by indexing has no mask_mod, since its indices would be "
        "others; set part.mask_mod to a function of the part's indices"
    )


def pair(size: Any) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else tuple(size)


def _ordered(dense: Any) -> tuple[Any, Any]:
    """How many blocks of each row count, and which: these first."""
    order = dense.argsort(-1, descending=True, stable=True)
    return dense.sum(-1, dtype=_C.int32), order.to(_C.int32)


def _dense(counts: Any, indices: Any, columns: int) -> Any:
    """The blocks as int32: 1 for those that count."""
    places = _C.arange(indices.shape[-1], device=indices.device)
    # Indices after the first `counts` may have any value: put them in a last column.
    used = places < counts.unsqueeze(-1)
    found = indices.long().masked_fill(~used, columns)
    made = _C.zeros(
        (*indices.shape[:-1], columns + 1), dtype=_C.int32, device=indices.device
    )
    return made.scatter(-1, found, 1)[..., :columns]


def _need_rows(indices: Tensor) -> None:
    if indices.ndim < 2:
        raise RuntimeError(
            f"BlockMask: kv_indices has shape {[*indices.shape]}; give (rows, columns) "
            "of blocks, with B and H before them"
        )


def _sign(tile: list[list[int]]) -> str:
    """The sign for a tile of blocks."""
    if all(map(all, tile)):
        return "██"
    return "░░" if any(map(any, tile)) else "  "


def blocks_of(
    mask: Any, sizes: tuple[int, int], mask_mod: Any, separate: bool
) -> BlockMask:
    """The BlockMask of a bool mask (B, H, queries, keys)."""
    *leading, rows, columns = mask.shape
    high, wide = sizes
    down, across = -(-rows // high), -(-columns // wide)
    padded = mask.new_zeros((*leading, down * high, across * wide))
    padded[..., :rows, :columns] = mask
    tiles = padded.reshape(*leading, down, high, across, wide).transpose(-3, -2)
    number = tiles.sum((-2, -1))
    full = (number == high * wide) & separate
    partial = (number > 0) & ~full
    first = _ordered(partial.int())
    more = _ordered(full.int()) if separate else (None, None)
    given: Any = (*first, *more, sizes, mask_mod, (rows, columns))
    return BlockMask.from_kv_blocks(*given)


class BlockMask:
    """Which blocks of scores count, and which pairs in them: of create_block_mask().

    seq_lengths         the numbers of queries and keys
    kv_num_blocks       int32 (B, H, rows): the number of blocks in each row of blocks
    kv_indices          int32 (B, H, rows, columns): which they are, these first
    full_kv_num_blocks  the number of blocks of which all counts, or None
    full_kv_indices     which they are, or None
    q_num_blocks, q_indices, full_q_num_blocks, full_q_indices
                        the same by columns
    BLOCK_SIZE          queries and keys of a block
    mask_mod            the function of (b, h, q_idx, kv_idx) that says what counts

    The blocks are what the mask shows; flex_attention() asks mask_mod alone.

    >>> flex = nn.attention.flex_attention
    >>> causal = lambda b, h, q_idx, kv_idx: q_idx >= kv_idx
    >>> mask = flex.create_block_mask(causal, None, None, 256, 256, device='cpu')
    >>> mask.kv_num_blocks + mask.full_kv_num_blocks
    tensor([[[1, 2]]], dtype=torch.int32)
    """

    kv_num_blocks: Tensor
    kv_indices: Tensor
    full_kv_num_blocks: Tensor | None
    full_kv_indices: Tensor | None
    q_num_blocks: Tensor | None
    q_indices: Tensor | None
    full_q_num_blocks: Tensor | None
    full_q_indices: Tensor | None
    mask_mod: Callable[..., Tensor]

    def __init__(
        self,
        seq_lengths: tuple[int, int],
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None,
        full_kv_indices: Tensor | None,
        q_num_blocks: Tensor | None,
        q_indices: Tensor | None,
        full_q_num_blocks: Tensor | None,
        full_q_indices: Tensor | None,
        BLOCK_SIZE: tuple[int, int] = (128, 128),
        mask_mod: Callable[..., Tensor] = noop_mask,
    ) -> None:
        _need_rows(kv_indices)
        given: tuple[Any, ...] = (kv_num_blocks, kv_indices)
        given += (full_kv_num_blocks, full_kv_indices, q_num_blocks, q_indices)
        given += (full_q_num_blocks, full_q_indices)
        for i in (2, 4, 6):
            if (given[i] is None) != (given[i + 1] is None):
                raise AssertionError(
                    f"BlockMask: give both {_LISTS[i]} and {_LISTS[i + 1]}, or neither"
                )
        for name, value in zip(_LISTS, given, strict=True):
            setattr(self, name, value)
        self.seq_lengths, self.BLOCK_SIZE = seq_lengths, BLOCK_SIZE
        self.mask_mod = mask_mod

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None,
        BLOCK_SIZE: int | tuple[int, int] = 128,
        mask_mod: Callable[..., Tensor] | None = None,
        seq_lengths: tuple[int, int] | None = None,
        compute_q_blocks: bool = True,
    ) -> BlockMask:
        """A BlockMask of the blocks of each row; the others follow from them.

        kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices: see BlockMask.
        BLOCK_SIZE: one number, or two. mask_mod: noop_mask() if it is None.
        seq_lengths: those of whole blocks if it is None. compute_q_blocks: whether to
        make the lists by columns.

        RuntimeError for indices of one dimension, AssertionError for one of a pair.
        """
        _need_rows(kv_indices)
        sizes = pair(BLOCK_SIZE)
        if seq_lengths is None:
            rows, columns = kv_indices.shape[-2:]
            seq_lengths = (rows * sizes[0], columns * sizes[1])
        lists = [(kv_num_blocks, kv_indices), (full_kv_num_blocks, full_kv_indices)]
        by_column: list[Any] = [None] * 4
        if compute_q_blocks:
            columns = kv_indices.shape[-1]
            for i, (counts, indices) in enumerate(lists):
                if counts is not None and indices is not None:
                    dense = _dense(counts, indices, columns)
                    by_column[2 * i : 2 * i + 2] = _ordered(dense.mT)
        mod = noop_mask if mask_mod is None else mask_mod
        kept = (kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices)
        given: Any = (seq_lengths, *kept, *by_column, sizes, mod)
        return cls(*given)

    def _lists(self) -> list[Any]:
        return [getattr(self, name) for name in _LISTS]

    def as_tuple(self, flatten: bool = True) -> tuple[Any, ...]:
        """The constructor's arguments, in order.

        flatten: give the numbers of seq_lengths and BLOCK_SIZE one by one.
        """
        if flatten:
            ends = (*self.BLOCK_SIZE, self.mask_mod)
            return (*self.seq_lengths, *self._lists(), *ends)
        return (self.seq_lengths, *self._lists(), self.BLOCK_SIZE, self.mask_mod)

    @property
    def shape(self) -> tuple[int, ...]:
        """(B, H, queries, keys)."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self) -> int:
        """The number of pairs."""
        return math.prod(self.shape)

    def sparsity(self) -> float:
        """How many percent of the pairs are in no block; negative where blocks reach
        beyond the pairs."""
        total = int(self.kv_num_blocks.sum())
        if self.full_kv_num_blocks is not None:
            total += int(self.full_kv_num_blocks.sum())
        return 100 * (1 - total * math.prod(self.BLOCK_SIZE) / self.numel())

    def to_dense(self) -> Tensor:
        """int32 (B, H, rows, columns): 1 for a block that counts, also in part."""
        columns = self.kv_indices.shape[-1]
        dense = _dense(self.kv_num_blocks, self.kv_indices, columns)
        if self.full_kv_num_blocks is not None:
            dense = dense | _dense(
                self.full_kv_num_blocks, self.full_kv_indices, columns
            )
        return dense

    def to_string(
        self, grid_size: int | tuple[int, int] = (20, 20), limit: int = 4
    ) -> str:
        """The blocks as text, a picture for each of the batch and each head.

        grid_size: the largest numbers of rows and columns, -1 for all; several blocks
        become one sign then, ░ where some of them count. limit: the number of pictures.
        """
        dense = self.to_dense().cpu()
        *leading, rows, columns = dense.shape
        most = (grid_size, grid_size) if isinstance(grid_size, int) else grid_size
        down, across = (
            -(-n // min(n, m if m > 0 else n)) if n else 1
            for n, m in zip((rows, columns), most, strict=True)
        )
        shown = []
        for i, index in enumerate(product(*map(range, leading))):
            if i == limit:
                shown.append(
                    "...\nTo print out more, set BlockMask.to_string(limit=N)\nYou can "
                    "also index (BlockMask[batch, head]) to choose a specific batch or "
                    "head"
                )
                break
            blocks = dense[index].tolist()
            lines = [str(index)]
            for y in range(0, rows, down):
                tiles = (
                    [row[x : x + across] for row in blocks[y : y + down]]
                    for x in range(0, columns, across)
                )
                lines.append("".join(map(_sign, tiles)))
            shown.append("\n".join([*lines, ""]))
        return "\n".join(shown)

    def to(self, device: Any) -> BlockMask:
        """The mask with its lists on a device."""
        moved = [None if x is None else x.to(device) for x in self._lists()]
        given: Any = (self.seq_lengths, *moved, self.BLOCK_SIZE, self.mask_mod)
        return BlockMask(*given)

    def __getitem__(self, index: Any) -> BlockMask:
        """The mask of a part of the batch, of the heads, or of the rows of blocks.

        A dimension stays where an int is given. The part has no mask_mod: set one.
        IndexError for an int that is out of range.
        """
        given = index if isinstance(index, tuple) else (index,)
        whole = []
        for place, each in enumerate(given):
            if isinstance(each, int):
                size = self.kv_num_blocks.shape[place]
                if not -size <= each < size:
                    raise IndexError(
                        f"BlockMask: index {each} of dimension {place}, which has size "
                        f"{size}"
                    )
                each = slice(each % size, each % size + 1)
            whole.append(each)
        kept = [None if x is None else x[tuple(whole)] for x in self._lists()[:4]]
        by_column = self.q_indices is not None
        rest = (self.BLOCK_SIZE, _of_a_part, self.seq_lengths, by_column)
        every: Any = (*kept, *rest)
        return BlockMask.from_kv_blocks(*every)

    def __str__(self) -> str:
        head = f"shape={self.shape}, sparsity={self.sparsity():.2f}%, "
        return f"BlockMask({head}\n{self.to_string().strip()}\n)"

    def __repr__(self) -> str:
        lines = []
        for name, value in zip(_LISTS, self._lists(), strict=True):
            lines.append(f"{name}={None if value is None else value.shape}")
        mod = getattr(self.mask_mod, "__name__", self.mask_mod)
        lines += [f"BLOCK_SIZE={self.BLOCK_SIZE}", f"shape={self.shape}"]
        lines += [f"sparsity={self.sparsity():.2f}%", f"mask_mod={mod}"]
        return "BlockMask(\n    " + ",\n    ".join(lines) + "\n)"
