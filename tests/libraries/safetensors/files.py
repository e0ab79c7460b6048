"""`safetensors.torch`: tensors and modules in files and bytes, shared weights, `safe_open`"""

import tempfile

import torch
from safetensors import safe_open
from safetensors.torch import load, load_file, load_model, save, save_file, save_model

torch.manual_seed(0)
types = [
    "float64",
    "float32",
    "float16",
    "bfloat16",
    "int64",
    "int32",
    "int16",
    "int8",
    "uint8",
    "bool",
]
x = {name: torch.randn(2, 3).mul(3).to(getattr(torch, name)) for name in types}
with tempfile.TemporaryDirectory() as folder:
    save_file(x, f"{folder}/x.safetensors", metadata={"by": "us"})
    found = load_file(f"{folder}/x.safetensors")
    print(
        all(
            torch.equal(found[k], v) and found[k].dtype == v.dtype for k, v in x.items()
        )
    )
    found = load(save(x))
    print(sorted(found), all(torch.equal(found[k], v) for k, v in x.items()))
    with safe_open(f"{folder}/x.safetensors", framework="pt", device="cpu") as file:
        print(file.metadata(), sorted(file.keys()))
        print(file.get_tensor("float32"), file.get_slice("int64")[:, 1:])
    net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3))
    net[1].weight = net[0].weight
    save_model(net, f"{folder}/net.safetensors")
    other = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3))
    other[1].weight = other[0].weight
    print(load_model(other, f"{folder}/net.safetensors"))
    print(torch.equal(net[1].weight, other[1].weight))
    try:
        save_file(net.state_dict(), f"{folder}/net.safetensors")
    except RuntimeError as error:
        print("shared" in str(error) or "share" in str(error))
