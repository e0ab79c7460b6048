"""Many short cases in one test, since each test costs a millisecond or two of its own.

    with Cases() as case:
        for source, expected in SOURCES.items():
            with case(source):
                assert eval(source) == expected

All cases run; then the test fails with the names and the errors of those that failed.
What nothing_left asks of a test is asked of each case, which may also be skipped: a
test is skipped if no case of it ran.
"""

from contextlib import contextmanager

import pytest
from conftest import alive, left_behind, settle

SHOWN = 20  # errors of one test


class Cases:
    def __enter__(self):
        self.ran, self.skipped, self.failed = 0, [], {}
        return self

    @contextmanager
    def __call__(self, name):
        before = alive()
        try:
            yield
            left = left_behind(before)
            assert left is None, left
            self.ran += 1
        except pytest.skip.Exception as skip:
            self.skipped.append(f"{name}: {skip}")
            settle()  # and no more: the exception holds its frames, with their tensors
        except (Exception, pytest.fail.Exception) as error:
            self.failed[name] = error
            settle()

    def __exit__(self, kind, error, trace):
        if kind is not None:
            return
        if self.failed:
            texts = [f"{n}: {type(e).__name__}: {e}" for n, e in self.failed.items()]
            more = f"{len(texts)} of {len(texts) + self.ran} cases failed"
            first = next(iter(self.failed.values()))
            raise AssertionError("\n".join([more, *texts[:SHOWN]])) from first
        if not self.ran and self.skipped:
            pytest.skip(self.skipped[0])
        assert self.ran, "there is no case"
