"""A policy that learns to walk to the right end of a corridor: REINFORCE."""

import sys

import torch
from torch import nn, optim
from torch.distributions import Categorical

device = sys.argv[1]
torch.manual_seed(11)
LENGTH = 6
policy = nn.Sequential(nn.Linear(LENGTH, 16), nn.ReLU(), nn.Linear(16, 2))
trainer = optim.Adam(policy.parameters(), lr=0.03)
places = torch.eye(LENGTH)
for episode in range(15):
    at, chances, rewards = 0, [], []
    for _ in range(20):
        choice = Categorical(logits=policy(places[at]))
        action = choice.sample()
        chances.append(choice.log_prob(action))
        at = max(0, at + (1 if action.item() else -1))
        rewards.append(1.0 if at == LENGTH - 1 else -0.05)
        if at == LENGTH - 1:
            break
    returns, total = [], 0.0
    for reward in reversed(rewards):
        total = reward + 0.95 * total
        returns.insert(0, total)
    returns = torch.tensor(returns)
    if len(returns) > 1:
        returns = (returns - returns.mean()) / (returns.std() + 1e-6)
    loss = -(torch.stack(chances) * returns).sum()
    trainer.zero_grad()
    loss.backward()
    trainer.step()
    print(episode, len(rewards), loss.item(), choice.entropy().item())
