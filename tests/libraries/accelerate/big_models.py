"""`init_empty_weights()`, `infer_auto_device_map()`, `cpu_offload()` and `disk_offload()`"""

import tempfile

import torch
from accelerate import (
    cpu_offload,
    disk_offload,
    infer_auto_device_map,
    init_empty_weights,
)
from accelerate.utils import compute_module_sizes, set_module_tensor_to_device

torch.manual_seed(0)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(4, 8)
        self.norm = torch.nn.BatchNorm1d(8)
        self.second = torch.nn.Linear(8, 2)

    def forward(self, x):
        return self.second(self.norm(self.first(x)))


with init_empty_weights():
    empty = Net()
print({p.device.type for p in empty.parameters()}, empty.norm.running_mean.device)
print(dict(compute_module_sizes(empty)))
print(dict(infer_auto_device_map(empty, {"cpu": 200, "disk": 10000})))
net = Net().eval()
for name, value in net.state_dict().items():
    set_module_tensor_to_device(empty, name, "cpu", value=value)
x = torch.randn(3, 4)
wanted = net(x)
print(torch.equal(empty.eval()(x), wanted))
offloaded = cpu_offload(empty, execution_device=torch.device("cpu"))
print(
    {p.device.type for p in offloaded.parameters()}, torch.equal(offloaded(x), wanted)
)
with tempfile.TemporaryDirectory() as folder:
    offloaded = disk_offload(net, folder, execution_device=torch.device("cpu"))
    print(torch.equal(offloaded(x), wanted))
