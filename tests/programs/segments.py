"""Discs found in pictures: an encoder and a decoder with skipped connections."""

import sys

import torch
import torch.nn.functional as F
from torch import nn, optim

device = sys.argv[1]
torch.manual_seed(4)
side = torch.arange(16.0)
centers = torch.rand(12, 2) * 8 + 4
away = (side[None, :, None] - centers[:, 0, None, None]) ** 2
away = away + (side[None, None] - centers[:, 1, None, None]) ** 2
masks = (away < 9).float().unsqueeze(1).to(device)
pictures = masks + 0.4 * torch.randn(12, 1, 16, 16).to(device)


def pair(before, after):
    layers = [nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU()]
    return nn.Sequential(*layers, nn.Conv2d(after, after, 3, padding=1), nn.ReLU())


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1, self.down2, self.low = pair(1, 6), pair(6, 12), pair(12, 12)
        self.up2 = nn.ConvTranspose2d(12, 12, 2, stride=2)
        self.mix2, self.mix1 = pair(24, 6), pair(12, 6)
        self.last = nn.Conv2d(6, 1, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(F.max_pool2d(a, 2))
        c = self.low(F.avg_pool2d(b, 2))
        b = self.mix2(torch.cat([self.up2(c), b], 1))
        up = F.interpolate(b, scale_factor=2, mode="bilinear", align_corners=False)
        return self.last(self.mix1(torch.cat([up, a], 1)))


def dice(out, mask):
    p = out.sigmoid()
    return 1 - 2 * (p * mask).sum() / (p.sum() + mask.sum() + 1)


net = Net().to(device)
trainer = optim.RMSprop(net.parameters(), lr=2e-3)
for step in range(8):
    out = net(pictures)
    both = F.binary_cross_entropy_with_logits(out, masks), dice(out, masks)
    trainer.zero_grad()
    sum(both).backward()
    trainer.step()
    print(
        step, both[0].item(), both[1].item(), ((out > 0) == masks.bool()).sum().item()
    )
