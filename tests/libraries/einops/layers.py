"""`rearrange`, `reduce`, `repeat`, `einsum`, `pack`, and the layers `Rearrange`, `Reduce`, `EinMix`"""

import torch
from einops import einsum, pack, rearrange, reduce, repeat, unpack
from einops.layers.torch import EinMix, Rearrange, Reduce

torch.manual_seed(0)
x = torch.randn(2, 3, 8, 8, requires_grad=True)
y = rearrange(x, "b c (h p) (w q) -> b (h w) (p q c)", p=4, q=4)
print(y.shape, y.sum().item())
print(reduce(x, "b c h w -> b c", "max"), repeat(x[0, 0, 0], "w -> w r", r=2).shape)
print(einsum(x, x, "b c h w, b d h w -> b c d")[0])
packed, shapes = pack([x, x[:, :, 0]], "b c *")
print(packed.shape, [part.shape for part in unpack(packed, shapes, "b c *")])
net = torch.nn.Sequential(
    Rearrange("b c (h p) (w q) -> b (h w) (p q c)", p=4, q=4),
    EinMix("b t d -> b t e", "d e", "e", d=48, e=5),
    torch.nn.ReLU(),
    Reduce("b t e -> b e", "mean"),
)
net(x).pow(2).sum().backward()
print(net)
print(net(x), x.grad.abs().sum().item())
