"""new_group(): who waits for whom, and programs whose ranks make different groups."""

import pytest
import ranks

HEAD = """
from datetime import timedelta
begin(timeout=timedelta(seconds={seconds}))
def made(*given, **named):
    try:
        return dist.new_group(*given, **named)
    except RuntimeError as error:
        sys.stdout.write(f"{rank} {error}\\n")
"""


def printed(tmp_path, code, size=3, seconds=1):
    """What the ranks print, and the number of the line after HEAD."""
    head = HEAD.replace("{seconds}", str(seconds))
    line = (ranks.HEAD + head).count("\n") + 1
    return "".join(ranks.run(tmp_path, size, head + code)), line


def test_other_ranks_do_not_wait_and_need_not_call(tmp_path):
    """As in PyTorch 2.13, where only TORCH_DIST_INIT_BARRIER=1 lets all wait."""
    code = """
if rank < 2:
    x = torch.ones(1)
    dist.all_reduce(x, group=made([0, 1]))
    assert x == 2
"""
    assert printed(tmp_path, code)[0] == ""


def test_groups_of_the_same_number_of_other_ranks(tmp_path):
    code = """
own = made([0, 1] if rank < 2 else [2, 3])
x = torch.full((1,), float(rank))
dist.all_reduce(x, group=own)
assert x == (1 if rank < 2 else 5), x
"""
    assert printed(tmp_path, code, 4)[0] == ""


def test_ranks_outside_get_none_where_members_alone_call(tmp_path):
    code = """
own = dist.new_group([0, 1], use_local_synchronization=True)
assert (own is None) == (rank == 2)
"""
    assert printed(tmp_path, code)[0] == ""


def test_a_rank_that_makes_no_group_is_named(tmp_path):
    code = """
dist.barrier()
if rank != 1:
    made([0, 1])
"""
    said, at = printed(tmp_path, code)
    assert (
        "rank 1 has left the process group (its program has ended), while rank 0 waits "
        f"for it in new_group([0, 1]) at program.py:{at - 3}; its last call was barrier "
        f"at program.py:{at + 1}" in said
    )
    code = """
dist.barrier()
if rank != 1:
    made([0, 1])
else:
    time.sleep(1.5)
"""
    said, at = printed(tmp_path, code)
    assert (
        "rank 1 has not come within 1 seconds, while rank 0 waits for it in new_group"
        in said
    )


@pytest.mark.parametrize(
    ("first", "second", "third", "says"),
    [
        (
            "([0, 1])",
            "([0, 1, 2])",
            "([0, 1, 2])",
            "rank 0 calls new_group([0, 1]) at 0:, and rank 1 calls new_group([0, 1, 2])"
            " at 1:; all ranks have to make the same groups in the same order",
        ),
        (
            "([0, 1])",
            "([1, 2])",
            "([1, 2])",
            "rank 0 calls new_group([0, 1]) at 0:, and rank 1 calls new_group([1, 2]) "
            "at 1:",
        ),
        (  # in another order
            "([0, 1]), dist.new_group([0, 2])",
            "([0, 1])",
            "([0, 2])",
            "rank 2 calls new_group([0, 2]) at 2:, and rank 0 calls new_group([0, 1]) "
            "at 0:",
        ),
        (
            "([1, 0], sort_ranks=False)",
            "([0, 1])",
            "([0, 1])",
            "rank 0 calls new_group([1, 0]) at 0:, and rank 1 calls new_group([0, 1]) "
            "at 1:",
        ),
    ],
)
def test_ranks_that_make_different_groups(tmp_path, first, second, third, says):
    code = f"""try:
    if rank == 0: dist.new_group{first}
    elif rank == 1: dist.new_group{second}
    else: dist.new_group{third}
except RuntimeError as error:
    sys.stdout.write(f"{{rank}} {{error}}\\n")
"""
    said, at = printed(tmp_path, code)
    for rank in range(3):
        says = says.replace(f"{rank}:", f"program.py:{at + 1 + rank}")
    assert says in said
