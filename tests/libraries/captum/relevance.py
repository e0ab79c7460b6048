"""`LRP` and `LayerLRP`, by three rules, of a convolutional network"""

import torch
from captum.attr import LRP, LayerLRP
from captum.attr._utils.lrp_rules import Alpha1_Beta0_Rule, EpsilonRule, GammaRule

torch.manual_seed(0)
net = torch.nn.Sequential(
    torch.nn.Conv2d(1, 3, 3),
    torch.nn.ReLU(),
    torch.nn.MaxPool2d(2),
    torch.nn.Flatten(),
    torch.nn.Linear(27, 8),
    torch.nn.Tanh(),
    torch.nn.Linear(8, 4),
)
x = torch.randn(2, 1, 8, 8)


def ruled(rule):
    """The network with rules, which attribute() takes off when it is done."""
    for part in (net[0], net[3], net[4], net[6]):
        part.rule = EpsilonRule() if part is net[3] else rule()
    return net


for rule in (EpsilonRule, GammaRule, Alpha1_Beta0_Rule):
    method = LRP(ruled(rule))
    found, delta = method.attribute(x, target=1, return_convergence_delta=True)
    print(rule.__name__, found.sum().item(), found.abs().sum().item(), delta)
    layer = LayerLRP(ruled(rule), net[0]).attribute(x, target=1)
    print(layer.shape, layer.abs().sum().item())
