"""Cases joined in one test fail by name, alone and with what each leaves behind."""

import pytest
from cases import Cases

import pydevtensor as torch


def test_all_cases_run_and_those_that_fail_are_named():
    ran = []
    with pytest.raises(AssertionError) as caught, Cases() as case:
        for name in ("good", "bad", "silent", "skipped", "last"):
            with case(name):
                ran.append(name)
                assert name != "bad", "it is bad"
                if name == "silent":
                    with pytest.raises(ValueError):
                        pass
                if name == "skipped":
                    pytest.skip("not here")
    assert ran == ["good", "bad", "silent", "skipped", "last"]
    lines = str(caught.value).splitlines()
    assert lines[0] == "2 of 4 cases failed"
    assert lines[1].startswith("bad: AssertionError: it is bad")
    assert any(line.startswith("silent: Failed: DID NOT RAISE") for line in lines)
    assert str(caught.value.__cause__).startswith("it is bad")


def test_a_case_leaves_nothing_behind(device):
    kept = []
    with pytest.raises(AssertionError) as caught, Cases() as case:
        with case("keeps"):
            kept.append(torch.ones(3, device=device))
        with case("drops"):
            torch.ones(3, device=device)
        with case("changes"):
            torch.set_default_dtype(torch.float64)
        with case("starts anew"):
            assert torch.get_default_dtype() is torch.float32
    first, second = str(caught.value).splitlines()
    assert first == "1 of 4 cases failed"
    assert second.startswith("keeps: AssertionError: storages alive on")
    kept.clear()


def test_a_test_without_cases():
    needs_more = pytest.raises(pytest.skip.Exception, match="first: needs more")
    with needs_more, Cases() as case, case("first"):
        pytest.skip("needs more")
    with pytest.raises(AssertionError, match="there is no case"), Cases():
        pass
    with pytest.raises(ZeroDivisionError), Cases():
        raise ZeroDivisionError
