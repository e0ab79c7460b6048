"""torch.futures: values that another thread gives."""

import threading

import pytest

import pydevtensor as torch
from pydevtensor.futures import Future, collect_all, wait_all


def test_a_value_from_another_thread():
    future = Future()
    assert not future.done()
    with pytest.raises(RuntimeError, match="no value yet"):
        future.value()
    thread = threading.Thread(target=future.set_result, args=(torch.ones(2),))
    thread.start()
    assert future.wait().tolist() == [1, 1] and future.done()
    thread.join()
    with pytest.raises(RuntimeError, match="only be marked completed once"):
        future.set_result(1)
    with pytest.raises(RuntimeError, match="only be marked completed once"):
        future.set_exception(KeyError())


def test_what_comes_then():
    first, seen = Future(), []
    second = first.then(lambda f: f.value() + 1)
    third = second.then(lambda f: f.wait() * 10)
    first.add_done_callback(lambda f: seen.append(f.value()))
    first.add_done_callback(lambda f: 1 / 0)
    first.set_result(1)
    assert (second.value(), third.value(), seen) == (2, 20, [1])
    assert first.then(lambda f: "at once").value() == "at once"


def test_errors():
    first = Future()
    second = first.then(lambda f: f.value())
    first.set_exception(KeyError("lost"))
    for each in (first, second, first.then(lambda f: f.value())):
        with pytest.raises(KeyError, match="lost"):
            each.wait()
    with pytest.raises(TypeError, match="give an exception"):
        Future().set_exception("text")


def test_several():
    futures = [Future() for _ in range(3)]
    both = collect_all(futures)
    for value in (2, 0, 1):
        assert not both.done()
        futures[value].set_result(value)
    assert both.value() == futures and wait_all(futures) == [0, 1, 2]
    assert wait_all([]) == []
    failing = [Future(), Future()]
    both = collect_all(failing)
    failing[1].set_exception(KeyError("one"))
    assert not both.done()
    failing[0].set_result(0)
    with pytest.raises(KeyError, match="one"):
        both.wait()
