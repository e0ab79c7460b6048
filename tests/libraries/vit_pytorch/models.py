"""seven models: a step of training"""

import torch
from vit_pytorch import ViT
from vit_pytorch.cait import CaiT
from vit_pytorch.cct import CCT
from vit_pytorch.cvt import CvT
from vit_pytorch.deepvit import DeepViT
from vit_pytorch.simple_vit import SimpleViT
from vit_pytorch.t2t import T2TViT

SIZES = {
    "image_size": 32,
    "patch_size": 8,
    "num_classes": 5,
    "dim": 32,
    "heads": 4,
    "mlp_dim": 64,
}
torch.manual_seed(0)
NETS = {
    "ViT": ViT(depth=2, **SIZES),
    "SimpleViT": SimpleViT(depth=2, **SIZES),
    "DeepViT": DeepViT(depth=2, **SIZES),
    "CaiT": CaiT(depth=1, cls_depth=1, **SIZES),
    "CCT": CCT(
        img_size=32,
        embedding_dim=32,
        n_conv_layers=1,
        num_layers=1,
        num_heads=2,
        mlp_ratio=2,
        num_classes=5,
    ),
    "T2TViT": T2TViT(
        dim=32,
        image_size=32,
        depth=1,
        heads=2,
        mlp_dim=64,
        num_classes=5,
        t2t_layers=((7, 4), (3, 2)),
    ),
    "CvT": CvT(
        num_classes=5,
        s1_emb_dim=8,
        s2_emb_dim=16,
        s2_heads=2,
        s2_depth=1,
        s3_emb_dim=16,
        s3_heads=2,
        s3_depth=1,
    ),
}
x = torch.randn(2, 3, 32, 32)
for name, net in NETS.items():
    optimizer = torch.optim.AdamW(net.parameters(), 1e-3)
    for _ in range(2):
        net.eval()  # no dropout
        loss = torch.nn.functional.cross_entropy(net(x), torch.tensor([1, 3]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(name, loss.item())
