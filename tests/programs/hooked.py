"""A network watched and steered by hooks of tensors, modules and saved tensors."""

import sys

import torch
from torch import nn, optim

device = sys.argv[1]
torch.manual_seed(51)
net = nn.Sequential(
    nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 3)
).to(device)
seen, steps = {}, {}


def note(name):
    def hook(module, args, output):
        seen[name] = output.detach().abs().mean().item()

    return hook


def shrink(module, args, output):
    return output * 0.9


def pass_on(module, grad_input, grad_output):
    seen["back"] = grad_output[0].norm().item()
    return tuple(g if g is None else g * 1.1 for g in grad_input)


handles = [net[i].register_forward_hook(note(str(i))) for i in (1, 3)]
handles.append(net[2].register_forward_hook(shrink))
handles.append(net[3].register_full_backward_hook(pass_on))
net[0].weight.register_hook(lambda g: g.clamp(-0.05, 0.05))
trainers = {p: optim.SGD([p], lr=0.1, momentum=0.9) for p in net.parameters()}


def step_at_once(p):
    trainers[p].step()
    trainers[p].zero_grad()
    steps[id(p)] = steps.get(id(p), 0) + 1


for p in net.parameters():
    p.register_post_accumulate_grad_hook(step_at_once)
packed = []


def pack(x):
    packed.append(x.numel())
    wide = torch.float64 if x.is_floating_point() else x.dtype
    return x.to("cpu", wide), x.dtype


def unpack(kept):
    x, dtype = kept
    return x.to(device, dtype)


inputs = torch.randn(24, 6).to(device)
labels = torch.randint(0, 3, (24,)).to(device)
for step in range(10):
    packed.clear()
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        hidden = net[:4](inputs)
        hidden.retain_grad()
        loss = nn.functional.cross_entropy(net[4](hidden), labels)
    loss.backward()
    print(
        step, loss.item(), seen["1"], seen["3"], seen["back"], hidden.grad.norm().item()
    )
    if step == 5:
        handles[2].remove()
print(
    sorted(steps.values()),
    all(p.grad is None for p in net.parameters()),
    len(packed) > 5,
)
