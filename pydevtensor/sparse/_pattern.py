"""Where the entries of a sparse tensor are."""

from __future__ import annotations

from typing import Any

from pydevtensor import _C

LAYOUTS = {
    name: getattr(_C, name) for name in ("sparse_coo", "sparse_csr", "sparse_csc")
}


class Pattern:
    """The positions of entries along the first dimensions of a tensor.

    shape: of these dimensions. indices: of shape (dimensions, entries); they are
    `coalesced` where they are sorted and none occurs twice. A pattern does not change,
    so what is computed of it is kept.
    """

    starts: Any = None  # of a compressed pattern, as are the next two
    inner: Any = None
    by_column = False

    def __init__(self, shape: Any, indices: Any, coalesced: bool = False) -> None:
        self.shape, self.coalesced = tuple(shape), coalesced
        self._indices = indices
        self._rows: Any = None
        self._flipped: Pattern | None = None

    @classmethod
    def compressed(
        cls, shape: Any, starts: Any, inner: Any, by_column: bool = False
    ) -> Pattern:
        """A pattern of a matrix, made of where the entries of each row begin, and the
        column of each; by_column the other way round."""
        made = cls(shape, None, True)
        made.starts, made.inner, made.by_column = starts, inner, by_column
        return made

    @property
    def name(self) -> str:
        """That of the layout."""
        if self.starts is None:
            return "sparse_coo"
        return "sparse_csc" if self.by_column else "sparse_csr"

    @property
    def count(self) -> int:
        """How many entries there are."""
        found = self._indices.shape[1] if self.starts is None else self.inner.shape[0]
        return int(found)

    @property
    def device(self) -> Any:
        return (self._indices if self.starts is None else self.inner).device

    @property
    def indices(self) -> Any:
        """The positions, (dimensions, entries), int64."""
        if self._indices is None:
            starts = self.starts.long()
            numbers = _C.arange(starts.shape[0] - 1, device=starts.device)
            outer = numbers.repeat_interleave(starts.diff())
            both = (outer, self.inner.long())
            self._indices = _C.stack(both[::-1] if self.by_column else both)
        return self._indices

    def by_rows(self) -> tuple[Any, Any, Any]:
        """(starts, columns, order) of a matrix, of the entries in that order.

        order None: as they are.
        """
        if self.starts is not None and not self.by_column:
            return self.starts, self.inner, None
        if self._rows is None:
            rows, columns = self.indices
            order = None
            if self.starts is not None or not self.coalesced:
                order = rows.argsort(stable=True)
                rows, columns = rows[order], columns[order]
            ends = _C.arange(self.shape[0] + 1, device=rows.device)
            self._rows = _C.searchsorted(rows.contiguous(), ends), columns, order
        found: tuple[Any, Any, Any] = self._rows
        return found

    def flipped(self) -> Pattern:
        """That of the transposed matrix, whose entries are in the same order."""
        if self._flipped is None:
            turned = self.shape[::-1]
            if self.starts is None:
                self._flipped = Pattern(turned, self._indices.flip(0))
            else:
                kept, way = (self.starts, self.inner), not self.by_column
                self._flipped = Pattern.compressed(turned, *kept, way)
        return self._flipped

    def keys(self) -> Any:
        """Each position as one number, in row-major order."""
        key = self.indices.new_zeros(self.count)
        for each, size in zip(self.indices, self.shape, strict=True):
            key = key * size + each
        return key

    def merged(self) -> tuple[Pattern, Any]:
        """The coalesced pattern, and the number there of each entry."""
        keys, numbers = _C.unique(self.keys(), return_inverse=True)
        return Pattern(self.shape, positions(keys, self.shape), True), numbers

    def chosen(self, which: Any) -> Pattern:
        """The entries that an index or a mask of entries takes, of a COO pattern."""
        return Pattern(self.shape, self.indices[:, which])

    def to(self, device: Any) -> Pattern:
        """The same on another device."""
        if self.device == device:
            return self
        where, starts, inner = (
            None if x is None else x.to(device)
            for x in (self._indices, self.starts, self.inner)
        )
        made = Pattern(self.shape, where, self.coalesced)
        made.starts, made.inner, made.by_column = starts, inner, self.by_column
        return made


def positions(keys: Any, shape: tuple[int, ...]) -> Any:
    """Row-major numbers as indices, (dimensions, entries)."""
    found = []
    for size in shape[::-1]:
        found.append(keys % max(size, 1))
        keys = keys // max(size, 1)
    return _C.stack(found[::-1]) if found else keys.new_zeros((0, keys.shape[0]))
