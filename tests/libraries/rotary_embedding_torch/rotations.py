"""`RotaryEmbedding`: queries and keys, axial, xpos, a cache, learned frequencies"""

import torch
from rotary_embedding_torch import RotaryEmbedding, apply_rotary_emb

torch.manual_seed(0)
q, k = torch.randn(1, 2, 16, 32), torch.randn(1, 2, 16, 32)
rotary = RotaryEmbedding(dim=16)
print(rotary.rotate_queries_or_keys(q).sum().item())
print(rotary.rotate_queries_or_keys(q, offset=3).abs().sum().item())
short = q[:, :, -1:]
a, b = rotary.rotate_queries_with_cached_keys(short, k)
print(a.sum().item(), b.sum().item())
xpos = RotaryEmbedding(dim=16, use_xpos=True)
a, b = xpos.rotate_queries_and_keys(q, k)
print((a @ b.mT).diagonal(dim1=-2, dim2=-1).sum().item())
axial = RotaryEmbedding(dim=16, freqs_for="pixel", max_freq=256)
q = torch.randn(1, 8, 8, 4, 64)
freqs = axial.get_axial_freqs(8, 8, 4)
print(freqs.shape, apply_rotary_emb(freqs, q).sum().item())
learned = RotaryEmbedding(dim=16, learned_freq=True)
learned.rotate_queries_or_keys(k).pow(3).sum().backward()
print(learned.freqs.grad)
longer = RotaryEmbedding(dim=16, interpolate_factor=2.0)
print(longer.rotate_queries_or_keys(k).sum().item())
