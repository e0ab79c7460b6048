"""Mistakes that type checkers find: the lines with a comment, and no others.

"wrong for mypy" is a matter of mypy --strict alone. mypy takes a module, which has a
__getattr__, for anything, so that one mistake is pyright's.
"""

import pydevtensor as torch
from pydevtensor import nn, optim
from pydevtensor.nn import functional as F
from pydevtensor.optim.lr_scheduler import LambdaLR, StepLR
from pydevtensor.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    RandomSampler,
    Subset,
    TensorDataset,
    random_split,
)

Pair = tuple[torch.Tensor, torch.Tensor]


class Names(Dataset[Pair]):
    def __getitem__(self, index: int) -> str:  # wrong: Pair was promised
        return str(index)


class Untyped(Dataset[Pair]):
    def __getitem__(self, index):  # wrong for mypy: no types
        return index


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Linear("4", 2)  # wrong: a str for in_features
        self.two = nn.Linear(4)  # wrong: out_features is missing
        self.three = nn.Linear(4, 2, bais=False)  # wrong: no such option
        self.drop = nn.Dropout("half")  # wrong: a str for p
        self.norm = nn.BatchNorm1d(4.5)  # wrong: a float for num_features
        self.conv = nn.Conv2d(1, "8", 3)  # wrong: a str for out_channels

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.item()  # wrong: a number for a Tensor


net = Net()
x = torch.ones(2, 4)
data = TensorDataset(x, torch.zeros(2))

TensorDataset([1.0, 2.0])  # wrong: a list for a Tensor
DataLoader(32)  # wrong: an int for a data set
DataLoader(data, batch_size="16")  # wrong: a str for batch_size
DataLoader(data, batchsize=16)  # wrong: no such option
DataLoader(data, shuffle="yes")  # wrong: a str for a bool
DataLoader(data, num_workers=2.5)  # wrong: a float for num_workers
DataLoader(data, collate_fn=3)  # wrong: an int for a function
RandomSampler(5)  # wrong: an int for a data set
BatchSampler(RandomSampler(data), "2", False)  # wrong: a str for batch_size
Subset(data, 3)  # wrong: an int for indices
random_split(data, 0.5)  # wrong: one fraction alone

optim.SGD(net, lr=0.1)  # wrong for pyright: a module for its parameters
optim.SGD(net.parameters(), lr="0.1")  # wrong: a str for lr
optim.SGD(net.parameters(), 0.1, learning_rate=1)  # wrong: no such option
optim.Adam(net.parameters(), betas=0.9)  # wrong: one beta alone
optimizer = optim.SGD(net.parameters(), lr=0.1)
optimizer.zero_grad("none")  # wrong: a str for a bool
optimizer.step(3)  # wrong: an int for a closure
StepLR(net, step_size=2)  # wrong: a module for an optimizer
StepLR(optimizer, step_size="2")  # wrong: a str for step_size
LambdaLR(optimizer, 0.9)  # wrong: a number for a function

x.to(3.5)  # wrong: a float for a device
x.to(dtype="float32")  # wrong: a str for a dtype
net.to(3.5)  # wrong: a float for a device
x.reshape("2", 4)  # wrong: a str for a size
x.reshape(2, 4.5)  # wrong: a float for a size
x.sum(dim="rows")  # wrong: a str for dim
size = x.item().shape  # wrong: a number has no shape
x.item(0)  # wrong: item() takes nothing
name: str = x.sum().item()  # wrong: a number for a str
shape = x.shap  # wrong: no such attribute
x.backward(retain_graph="yes")  # wrong: a str for a bool
x.requires_grad = "yes"  # wrong: a str for a bool
torch.cat(x, "0")  # wrong: a str for dim
torch.zeros("2", 3)  # wrong: a str for a size
torch.zeros(2, dtype="float")  # wrong: a str for a dtype
torch.manual_seed("0")  # wrong: a str for a seed
F.relu(3)  # wrong: a number for a Tensor
F.cross_entropy(x, 1)  # wrong: a number for a Tensor
net.train("on")  # wrong: a str for a bool
net.load_state_dict("net.pt")  # wrong: a path for a state
net.register_buffer("b", 3)  # wrong: a number for a Tensor
count: int = net.state_dict()  # wrong: a dict for an int
