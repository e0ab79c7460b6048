"""losses, miners, distances, reducers, a sampler, a cross-batch memory"""

import torch
from pytorch_metric_learning import (
    distances,
    losses,
    miners,
    reducers,
    regularizers,
    samplers,
)

torch.manual_seed(0)
net = torch.nn.Linear(10, 8)
x, y = torch.randn(24, 10), torch.arange(24) % 4
for loss in (
    losses.TripletMarginLoss(margin=0.2),
    losses.ContrastiveLoss(pos_margin=0.1, neg_margin=1.0),
    losses.NTXentLoss(temperature=0.1),
    losses.SupConLoss(),
    losses.MultiSimilarityLoss(),
    losses.CircleLoss(),
    losses.NPairsLoss(),
    losses.LiftedStructureLoss(),
    losses.FastAPLoss(),
    losses.ArcFaceLoss(4, 8),
    losses.CosFaceLoss(4, 8),
    losses.ProxyAnchorLoss(4, 8),
    losses.ProxyNCALoss(4, 8, softmax_scale=1),
    losses.SoftTripleLoss(4, 8),
    losses.NormalizedSoftmaxLoss(4, 8),
    losses.SphereFaceLoss(4, 8),
    losses.TripletMarginLoss(
        distance=distances.CosineSimilarity(),
        reducer=reducers.ThresholdReducer(low=0),
        embedding_regularizer=regularizers.LpRegularizer(),
    ),
):
    net.zero_grad()
    found = loss(net(x), y)
    found.backward()
    print(type(loss).__name__, found.item(), net.weight.grad.abs().sum().item())
for miner in (
    miners.MultiSimilarityMiner(epsilon=0.1),
    miners.TripletMarginMiner(margin=0.2, type_of_triplets="semihard"),
    miners.BatchHardMiner(),
    miners.PairMarginMiner(),
):
    picked = miner(net(x), y)
    print(type(miner).__name__, [len(part) for part in picked])
    print(losses.TripletMarginLoss()(net(x), y, picked).item())
memory = losses.CrossBatchMemory(losses.NTXentLoss(), embedding_size=8, memory_size=48)
for _ in range(3):
    print(memory(net(x), y).item())
print(len(list(samplers.MPerClassSampler(y, m=2, length_before_new_iter=16))))
