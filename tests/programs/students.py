"""A small network taught by a larger one, then pruned, then trained on."""

import sys

import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.nn.utils import prune

device = sys.argv[1]
torch.manual_seed(32)
x = torch.randn(60, 8).to(device)
y = (x[:, :4].sum(1) > 0).long() + (x[:, 4] > 1).long()
teacher = nn.Sequential(nn.Linear(8, 64), nn.Hardswish(), nn.Linear(64, 3)).to(device)
student = nn.Sequential(nn.Linear(8, 8), nn.PReLU(), nn.Linear(8, 3)).to(device)
trainer = optim.Adagrad(teacher.parameters(), lr=0.05)
for step in range(6):
    loss = F.cross_entropy(teacher(x), y)
    trainer.zero_grad()
    loss.backward()
    trainer.step()
    print("teacher", step, loss.item())
trainer = optim.Adadelta(student.parameters(), lr=1.0, rho=0.8)


def train(name, steps):
    for step in range(steps):
        with torch.no_grad():
            wanted = F.log_softmax(teacher(x) / 2, 1)
        out = student(x)
        soft = F.kl_div(
            F.log_softmax(out / 2, 1), wanted, log_target=True, reduction="batchmean"
        )
        loss = 4 * soft + 0.3 * F.cross_entropy(out, y)
        trainer.zero_grad()
        loss.backward()
        trainer.step()
        print(name, step, soft.item(), loss.item())


train("student", 6)
prune.l1_unstructured(student[0], "weight", amount=0.5)
print((student[0].weight == 0).sum().item(), [n for n, _ in student.named_buffers()])
trainer = optim.ASGD(student.parameters(), lr=0.05)
train("pruned", 4)
prune.remove(student[0], "weight")
print((student[0].weight == 0).float().mean().item(), student[0].weight.norm().item())
