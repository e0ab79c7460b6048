"""A pole kept upright: Q-learning with a memory of steps and a second network."""

import copy
import sys

import torch
import torch.nn.functional as F
from torch import nn, optim

device = sys.argv[1]
torch.manual_seed(12)


def step_of(state, action):
    """The next state and the reward of a pole on a cart, much simplified."""
    angle, speed = state.unbind(-1)
    speed = speed + 0.1 * angle.sin() + 0.1 * (action.float() - 0.5)
    angle = angle + speed
    return torch.stack([angle, speed], -1), (angle.abs() < 0.5).float()


def network():
    return nn.Sequential(nn.Linear(2, 24), nn.ReLU(), nn.Linear(24, 2))


net = network().to(device)
fixed = copy.deepcopy(net).requires_grad_(False)
trainer = optim.Adam(net.parameters(), lr=5e-3)
memory = []
state = torch.zeros(2)
for step in range(30):
    greedy = net(state.to(device)).argmax().cpu()
    action = torch.randint(0, 2, ()) if torch.rand(()) < 0.3 else greedy
    after, reward = step_of(state, action)
    memory.append((state, action, after, reward))
    state = after if reward else 0.05 * torch.randn(2)
    if len(memory) < 8:
        continue
    chosen = torch.randint(0, len(memory), (8,)).tolist()
    batch = [
        torch.stack(part).to(device)
        for part in zip(*(memory[k] for k in chosen), strict=True)
    ]
    states, actions, afters, rewards = batch
    mine = net(states).gather(1, actions.unsqueeze(1)).squeeze(1)
    best = net(afters).argmax(1, keepdim=True)
    wanted = rewards + 0.9 * rewards * fixed(afters).gather(1, best).squeeze(1)
    loss = F.smooth_l1_loss(mine, wanted)
    trainer.zero_grad()
    loss.backward()
    trainer.step()
    with torch.no_grad():
        for slow, fast in zip(fixed.parameters(), net.parameters(), strict=True):
            slow.lerp_(fast, 0.05)
    print(step, loss.item(), mine.mean().item(), state.tolist())
