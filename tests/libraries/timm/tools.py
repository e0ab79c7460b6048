"""optimizers, schedules, losses, mixup, averages, `resolve_data_config()`, names of models"""

import timm
import torch
from timm.data import Mixup, resolve_data_config
from timm.loss import LabelSmoothingCrossEntropy, SoftTargetCrossEntropy
from timm.optim import create_optimizer_v2
from timm.scheduler import CosineLRScheduler
from timm.utils import ModelEmaV2, accuracy

torch.manual_seed(0)
print(len(timm.list_models("resnet*")) > 50)
net = timm.create_model("resnet10t", num_classes=5)
print(resolve_data_config({}, model=net)["input_size"])
x, y = torch.randn(4, 3, 64, 64), torch.tensor([0, 1, 2, 3])
for name in (
    "sgd",
    "adamw",
    "lamb",
    "lion",
    "adan",
    "nadamw",
    "adafactor",
    "madgrad",
    "rmsproptf",
    "radam",
    "lars",
    "adopt",
    "laprop",
    "kron",
    "muon",
):
    layer = torch.nn.Linear(3, 2)
    with torch.no_grad():
        layer.weight.copy_(torch.arange(6.0).view(2, 3))
    optimizer = create_optimizer_v2(layer, name, lr=0.01, weight_decay=0.1)
    for _ in range(3):
        layer(torch.ones(2, 3)).pow(2).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    print(name, layer.weight.sum().item())
optimizer = create_optimizer_v2(net, "adamw", lr=1e-3, layer_decay=0.7)
schedule = CosineLRScheduler(optimizer, 10, warmup_t=2, warmup_lr_init=1e-5)
ema = ModelEmaV2(net, decay=0.9)
for step in range(3):
    loss = LabelSmoothingCrossEntropy(0.1)(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step(step)
    ema.update(net)
    print(loss.item(), optimizer.param_groups[0]["lr"])
mixed, target = Mixup(mixup_alpha=0.1, num_classes=5)(x, y)
print(SoftTargetCrossEntropy()(net(mixed), target).isfinite().item())
print([p.shape for p in accuracy(net(x), y, topk=(1, 2))])
