"""families of models: forward, a step of AdamW, `features_only`"""

import timm
import torch

SMALL = [
    *("resnet18", "resnext26ts", "seresnet18", "regnetx_002", "densenet121"),
    *("mobilenetv3_small_050", "efficientnet_lite0", "efficientnet_b0", "ghostnet_050"),
    *("convnext_atto", "convnextv2_atto", "edgenext_xx_small", "mobilevit_xxs"),
    *(
        "vit_tiny_patch16_224",
        "deit_tiny_patch16_224",
        "mixer_s32_224",
        "poolformer_s12",
    ),
    *("swin_tiny_patch4_window7_224", "swinv2_cr_tiny_ns_224", "pvt_v2_b0"),
    *(
        "levit_128s",
        "xcit_nano_12_p16_224",
        "repvgg_a0",
        "nf_resnet50",
        "hrnet_w18_small",
    ),
    *(
        "fastvit_t8",
        "efficientformerv2_s0",
        "tiny_vit_5m_224",
        "maxvit_rmlp_pico_rw_256",
    ),
]
for name in SMALL:
    torch.manual_seed(0)
    net = timm.create_model(name, num_classes=5)
    side = net.default_cfg["input_size"][-1]
    side = side if "vit" in name or "swin" in name or "mixer" in name else 64
    side = 224 if any(w in name for w in ("levit", "xcit", "deit", "former")) else side
    optimizer = torch.optim.AdamW(net.parameters(), 1e-3)
    x = torch.randn(2, 3, side, side)
    net.train()
    loss = torch.nn.functional.cross_entropy(net(x), torch.tensor([1, 3]))
    loss.backward()
    optimizer.step()
    norm = torch.stack([p.grad.norm() for p in net.parameters() if p.grad is not None])
    print(name, loss.item(), bool(norm.isfinite().all()))
net = timm.create_model("resnet18", features_only=True, out_indices=(1, 3))
print([tuple(y.shape) for y in net(torch.randn(1, 3, 64, 64))])
