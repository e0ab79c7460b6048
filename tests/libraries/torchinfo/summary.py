"""`summary` of convolutional, recurrent and nested networks"""

import torch
from torchinfo import summary

net = torch.nn.Sequential(
    torch.nn.Conv2d(1, 4, 3),
    torch.nn.BatchNorm2d(4),
    torch.nn.Sequential(torch.nn.ReLU(), torch.nn.MaxPool2d(2)),
    torch.nn.Flatten(),
    torch.nn.Linear(36, 2),
)
names = [
    "input_size",
    "output_size",
    "num_params",
    "kernel_size",
    "mult_adds",
    "trainable",
]
print(summary(net, input_size=(2, 1, 8, 8), verbose=0, device="cpu", col_names=names))
found = summary(
    torch.nn.LSTM(3, 5, 2, batch_first=True), (2, 7, 3), verbose=0, device="cpu"
)
print(found.total_params, found.total_mult_adds)
print(
    summary(
        torch.nn.Transformer(8, 2, 1, 1, 16),
        input_data=[torch.ones(3, 2, 8)] * 2,
        verbose=0,
        device="cpu",
        depth=4,
    )
)
