"""Small checkpoints as PyTorch writes them, in base64, and what is in them."""

import base64
import collections
import io


def values(torch):
    base = torch.arange(12.0).reshape(3, 4)
    tied = torch.ones(2)
    state = torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.ReLU()).state_dict()
    for tensor in state.values():
        tensor.fill_(0.5)
    yield "views", [base, base.t(), base[1:, ::2], base[0].expand(2, 4)]
    yield "scalars", {"zero": torch.tensor(5), "empty": torch.zeros(0, 3)}
    yield "tied", {"a": tied, "b": tied}
    yield "state_dict", state
    yield "parameter", torch.nn.Parameter(torch.ones(2))
    yield "gradient", torch.ones(2, requires_grad=True)
    for name in (
        "bool",
        "uint8",
        "int8",
        "int16",
        "int32",
        "int64",
        "float32",
        "float64",
        "float16",
        "bfloat16",
    ):
        yield name, torch.tensor([0, 1, 1]).to(getattr(torch, name))
    yield (
        "plain",
        [
            None,
            True,
            3,
            -4,
            2**40,
            -(2**70),
            1.5,
            "é",
            b"\xff\x00",
            b"",
            (1, (2,)),
            {1},
        ],
    )
    yield "names", [torch.Size([1, 2]), torch.device("cuda", 1), torch.float32]
    yield "ordered", collections.OrderedDict(x=1, y=[2])


def describe(torch, value):
    """What a test on either side makes of a value: JSON alone."""
    if isinstance(value, torch.Tensor):
        return {
            "tensor": value.tolist(),
            "dtype": str(value.dtype),
            "stride": list(value.stride()),
            "offset": value.storage_offset(),
            "grad": value.requires_grad,
        }
    if isinstance(value, dict):
        return {"dict": [[k, describe(torch, v)] for k, v in value.items()]}
    if isinstance(value, list):
        return [describe(torch, item) for item in value]
    return repr(value)


def pack(torch, value, **options):
    file = io.BytesIO()
    torch.save(value, file, **options)
    return base64.b64encode(file.getvalue()).decode()


def make(torch):
    files = [
        {"name": name, "file": pack(torch, value), "value": describe(torch, value)}
        for name, value in values(torch)
    ]
    for protocol in (3, 4, 5):
        value = [1, "a", b"b", {2}, torch.ones(2)]
        files.append(
            {
                "name": f"protocol {protocol}",
                "file": pack(torch, value, pickle_protocol=protocol),
                "value": describe(torch, value),
            }
        )
    linear = torch.nn.Linear(1, 1)
    for tensor in linear.state_dict().values():
        tensor.fill_(0.5)
    refused = [
        ("torch.uint16", torch.zeros(1, dtype=torch.uint16), {}),
        ("torch.complex64", torch.zeros(1, dtype=torch.complex64), {}),
        ("torch.nn.modules.linear.Linear", linear, {}),
        ("before version 1.6", 1, {"_use_new_zipfile_serialization": False}),
        ("storage without a tensor", [torch.ones(1).untyped_storage()], {}),
    ]
    return {
        "files": files,
        "refused": [
            {"names": names, "file": pack(torch, value, **options)}
            for names, value, options in refused
        ],
    }
