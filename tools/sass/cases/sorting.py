"""Sorts and scans."""

from sass.case import Case


def moves_of_a_tile(load: str, store: str, groups: int) -> tuple[str, ...]:
    """Groups of four elements are loaded and given places, loaded again and sorted in
    shared memory, stored; the same with what says where they were."""
    ranked = (load, *["VOTE"] * 32, "STS") * groups
    elements = (load, *["STS"] * 4) * groups + (store,) * 4 * groups
    places = ("load 4", *["STS"] * 4) * groups + ("store 4",) * 4 * groups
    return ranked + elements + places


CASES = (
    Case(
        "sort of a chunk, a pair",
        "sort",
        "chunk_kernel<unsigned int>",
        elements=2,
        passes=(*["LDS"] * 4, *["STS"] * 4),
        most=16,
        in_flight=0,
        registers=32,
        is_round=True,
    ),
    Case(
        "sort of long rows, counting a digit, a round",
        "sort",
        "radix::count_kernel<unsigned int>",
        elements=4,
        passes=(*["load 4"] * 4, *["ATOMS"] * 4),
        most=24,
        in_flight=16,
        registers=32,
        is_round=True,
    ),
    Case(
        "sort of long rows, moving by a digit",
        "sort",
        "radix::move_kernel<unsigned int>",
        elements=16,
        passes=moves_of_a_tile("load 4", "store 4", groups=4),
        most=150,
        in_flight=16,
        registers=56,
    ),
    Case(
        "sort of long rows of 8 bytes, moving by a digit",
        "sort",
        "radix::move_kernel<unsigned long>",
        elements=8,
        passes=moves_of_a_tile("load 8", "store 8", groups=2),
        most=165,
        in_flight=32,
        registers=64,
    ),
    Case(
        "cumsum, four elements added up",
        "scan",
        "scan_kernel<Folds<double> >",
        elements=4,
        passes=(*["F2F.F64.F32"] * 4, *["DADD"] * 4),
        most=20,
        in_flight=0,
        registers=64,
        is_round=True,
    ),
    Case(
        "cumsum, four results",
        "scan",
        "scan_kernel<Folds<double> >",
        elements=4,
        passes=(*["DADD"] * 4, *["F2F.F32.F64"] * 4),
        most=20,
        in_flight=0,
        registers=64,
        is_round=True,
    ),
    Case(
        "cummax of int64, eight results in memory",
        "scan",
        "scan_kernel<Extremes<long> >",
        elements=8,
        passes=("LDGSTS.E.BYPASS.128", *["SHFL.UP"] * 4, "store 16", "store 16"),
        most=80,
        in_flight=0,
        registers=64,
        is_round=True,
    ),
)
