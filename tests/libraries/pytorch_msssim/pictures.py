"""`ssim`, `ms_ssim` and their modules, with gradients"""

import torch
from pytorch_msssim import MS_SSIM, SSIM, ms_ssim, ssim

torch.manual_seed(0)
x = torch.rand(2, 3, 176, 176, requires_grad=True)
y = (x.detach() + 0.1 * torch.rand(2, 3, 176, 176)).clamp(0, 1)
print(ssim(x, y, data_range=1, size_average=False))
print(ms_ssim(x, y, data_range=1, size_average=False))
for make in (SSIM, MS_SSIM):
    found = make(data_range=1, channel=3)(x, y)
    (g,) = torch.autograd.grad(1 - found, x)
    print(found.item(), g.abs().sum().item())
