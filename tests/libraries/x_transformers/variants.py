"""decoder and encoder in seven variants: a step of training, generation"""

import torch
from x_transformers import (
    AutoregressiveWrapper,
    Decoder,
    Encoder,
    TransformerWrapper,
    XTransformer,
)

VARIANTS = {
    "plain": {},
    "rotary": {"rotary_pos_emb": True},
    "alibi": {"alibi_pos_bias": True, "alibi_num_heads": 2},
    "rmsnorm, swiglu": {"use_rmsnorm": True, "ff_glu": True, "ff_swish": True},
    "one key head": {"attn_one_kv_head": True, "attn_dim_head": 8},
    "flash": {"attn_flash": True},
    "qk norm": {"attn_qk_norm": True},
}
for name, options in VARIANTS.items():
    torch.manual_seed(0)
    layers = Decoder(dim=32, depth=2, heads=4, **options)
    net = AutoregressiveWrapper(
        TransformerWrapper(num_tokens=20, max_seq_len=32, attn_layers=layers)
    )
    x = torch.randint(0, 20, (2, 16))
    optimizer = torch.optim.Adam(net.parameters(), 1e-2)
    for _ in range(2):
        loss = net(x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(name, loss.item(), net.generate(x[:, :4], 5, temperature=0.0).tolist())
torch.manual_seed(0)
both = XTransformer(
    dim=32,
    enc_num_tokens=20,
    enc_depth=1,
    enc_heads=4,
    enc_max_seq_len=16,
    dec_num_tokens=20,
    dec_depth=1,
    dec_heads=4,
    dec_max_seq_len=16,
)
print(both(x, x).item())
encoder = TransformerWrapper(
    num_tokens=20, max_seq_len=32, attn_layers=Encoder(dim=32, depth=1, heads=4)
)
print(
    encoder(x, return_embeddings=True).shape,
    encoder(x, mask=torch.ones_like(x).bool()).abs().mean().item(),
)
