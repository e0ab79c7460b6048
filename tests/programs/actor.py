"""A continuous action moved to its target: an actor, a critic, clipped ratios (PPO)."""

import sys

import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.distributions import Normal

device = sys.argv[1]
torch.manual_seed(13)


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 24), nn.Tanh())
        self.mean, self.value = nn.Linear(24, 1), nn.Linear(24, 1)
        self.spread = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        h = self.body(x)
        return Normal(self.mean(h), self.spread.exp()), self.value(h).squeeze(1)


agent = Agent()
trainer = optim.Adam(agent.parameters(), lr=0.01)
for turn in range(5):
    states = torch.randn(64, 3)
    with torch.no_grad():
        policy, values = agent(states)
        actions = policy.sample()
        old = policy.log_prob(actions).sum(1)
        rewards = -((actions.squeeze(1) - states.sum(1)) ** 2)
        gains = rewards - values
        gains = (gains - gains.mean()) / (gains.std() + 1e-8)
    for epoch in range(3):
        policy, values = agent(states)
        ratio = (policy.log_prob(actions).sum(1) - old).exp()
        clipped = ratio.clamp(0.8, 1.2)
        actor = -torch.min(ratio * gains, clipped * gains).mean()
        critic = F.mse_loss(values, rewards)
        loss = actor + 0.5 * critic - 0.01 * policy.entropy().mean()
        trainer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
        trainer.step()
        print(turn, epoch, actor.item(), critic.item(), ratio.max().item())
    print(turn, rewards.mean().item(), agent.spread.item())
