"""Convolutions' patches and pooling."""

from sass.case import Case

CASES = (
    Case(
        "patches of a convolution, 9 taps",
        "convolution",
        "gather_patches<unsigned int>",
        elements=9,
        passes=("load 4", "store 4") * 9,
        most=33,
        in_flight=4,
        registers=32,
    ),
    Case(
        "sums of patches, 9 taps",
        "convolution",
        "sum_patches<float>",
        elements=9,
        passes=(*("load 4",) * 3, *("FADD",) * 3) * 3 + ("store 4",),
        most=55,
        in_flight=12,
        registers=48,
    ),
    Case(
        "depthwise convolution, 3 x 3",
        "depthwise",
        "depthwise_output<float, false>",
        elements=4,
        passes=(*("load 4",) * 5, *("FFMA",) * 4) * 9 + ("store 4",) * 4,
        most=370,
        in_flight=16,
        registers=48,
    ),
    Case(
        "max pooling, windows of 2 x 2",
        "pooling",
        "pooling_kernel<float, true>",
        elements=1,
        passes=(*["load 4"] * 4, "store 4"),
        most=190,
        in_flight=4,
        registers=32,
    ),
    Case(
        "gradient of average pooling, windows that do not overlap",
        "pooling",
        "backward_kernel<float, false>",
        elements=4,
        passes=("load 4", "store 4") * 4,
        most=190,
        in_flight=4,
        registers=48,
    ),
)
