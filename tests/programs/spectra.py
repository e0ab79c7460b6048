"""Heat that spreads, learnt in the frequency domain: real FFTs and their gradients."""

import math
import sys

import torch
import torch.nn.functional as F
from torch import nn, optim

device = sys.argv[1]
torch.manual_seed(23)
SIZE, KEPT = 32, 8
at = torch.arange(SIZE) * (2 * math.pi / SIZE)
waves = torch.stack([(k * at).sin() for k in range(1, 6)])
start = torch.randn(24, 5) @ waves
rates = torch.fft.rfftfreq(SIZE, 1 / SIZE)
after = torch.fft.irfft(torch.fft.rfft(start) * torch.exp(-0.05 * rates**2), n=SIZE)
start, after = start.to(device), after.to(device)


class Spectral(nn.Module):
    def __init__(self, channels):
        super().__init__()
        shape = channels, channels, KEPT
        self.weight = nn.Parameter(
            torch.complex(torch.randn(shape), torch.randn(shape)) / 8
        )
        self.local = nn.Conv1d(channels, channels, 1)

    def forward(self, x):
        found = torch.einsum("bik,iok->bok", torch.fft.rfft(x)[..., :KEPT], self.weight)
        return F.gelu(torch.fft.irfft(found, n=x.shape[-1]) + self.local(x))


net = nn.Sequential(nn.Conv1d(1, 4, 1), Spectral(4), Spectral(4), nn.Conv1d(4, 1, 1))
net.to(device)
trainer = optim.Adam(net.parameters(), lr=0.01)
for step in range(8):
    out = net(start.unsqueeze(1)).squeeze(1)
    loss = F.mse_loss(out, after)
    trainer.zero_grad()
    loss.backward()
    trainer.step()
    print(step, loss.item(), net[1].weight.grad.abs().mean().item())

sound = (at * 3).sin().repeat(8).to(device).requires_grad_()
window = torch.hann_window(32, device=device)
frames = torch.stft(sound, 32, 8, window=window, return_complex=True)
(frames.abs() ** 2).sum().backward()
back = torch.istft(frames.detach(), 32, 8, window=window, length=256)
print(
    frames.shape, sound.grad.norm().item(), (back - sound.detach()).abs().max().item()
)
picture = torch.randn(6, 6).to(device)
turned = torch.fft.fftshift(torch.fft.fft2(picture, norm="ortho"))
print(
    turned.abs().sum().item(),
    torch.fft.ifft2(torch.fft.ifftshift(turned)).real[0, 0].item(),
)
