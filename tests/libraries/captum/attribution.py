"""sixteen methods of attribution, of inputs, layers and neurons"""

import torch
from captum import attr

torch.manual_seed(0)
net = torch.nn.Sequential(
    torch.nn.Conv2d(1, 4, 3),
    torch.nn.ReLU(),
    torch.nn.MaxPool2d(2),
    torch.nn.Flatten(),
    torch.nn.Linear(36, 8),
    torch.nn.ReLU(),
    torch.nn.Linear(8, 3),
)
x = torch.randn(2, 1, 8, 8)
zero = torch.zeros_like(x)
METHODS = {
    "Saliency": {},
    "InputXGradient": {},
    "IntegratedGradients": {"n_steps": 10},
    "DeepLift": {"baselines": zero},
    "DeepLiftShap": {"baselines": torch.zeros(3, 1, 8, 8)},
    "GuidedBackprop": {},
    "Deconvolution": {},
    "FeatureAblation": {},
    "Occlusion": {"sliding_window_shapes": (1, 3, 3)},
    "ShapleyValueSampling": {
        "n_samples": 1,
        "feature_mask": torch.arange(4)
        .view(2, 2)
        .repeat_interleave(4, 0)
        .repeat_interleave(4, 1)[None, None],
    },
    "Lime": {
        "n_samples": 5,
        "feature_mask": torch.arange(4)
        .view(2, 2)
        .repeat_interleave(4, 0)
        .repeat_interleave(4, 1)[None, None],
    },
}
for name, options in METHODS.items():
    torch.manual_seed(1)
    given = x[:1] if name == "Lime" else x
    try:
        found = getattr(attr, name)(net).attribute(given, target=1, **options)
        print(name, tuple(found.shape), found.abs().sum().item())
    except ImportError:
        print(name, "needs a package")
print(attr.LayerGradCam(net, net[0]).attribute(x, target=1).abs().sum().item())
print(
    attr.LayerConductance(net, net[4])
    .attribute(x, target=1, n_steps=5)
    .abs()
    .sum()
    .item()
)
print(attr.LayerActivation(net, net[5]).attribute(x).sum().item())
print(
    attr.NeuronGradient(net, net[4]).attribute(x, neuron_selector=2).abs().sum().item()
)
print(
    attr.NoiseTunnel(attr.Saliency(net))
    .attribute(x, target=1, nt_samples=3, stdevs=0.0)
    .sum()
    .item()
)
