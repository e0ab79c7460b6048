"""flows of masked and coupled transforms: likelihoods, training, samples"""

import torch
from nflows import distributions, flows, transforms

torch.manual_seed(0)
x = torch.randn(64, 2) * torch.tensor([1.0, 0.3]) + 0.5
made = transforms.CompositeTransform(
    [
        step
        for _ in range(2)
        for step in (
            transforms.ReversePermutation(features=2),
            transforms.MaskedAffineAutoregressiveTransform(2, hidden_features=8),
        )
    ]
)
splines = transforms.CompositeTransform(
    [
        transforms.MaskedPiecewiseRationalQuadraticAutoregressiveTransform(
            2, hidden_features=8, num_bins=6, tails="linear", tail_bound=4.0
        ),
        transforms.LULinear(2),
    ]
)
for transform in (made, splines):
    flow = flows.Flow(transform, distributions.StandardNormal(shape=[2]))
    optimizer = torch.optim.Adam(flow.parameters(), 1e-2)
    for _ in range(10):
        loss = -flow.log_prob(x).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())
    noise = flow.transform_to_noise(x)
    back, _ = transform.inverse(noise)
    print((back - x).abs().max().item() < 1e-3, flow.sample(5).shape)
print(flows.SimpleRealNVP(4, 8, 2, 1).log_prob(torch.randn(3, 4)))
