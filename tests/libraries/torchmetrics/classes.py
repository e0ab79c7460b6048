"""75 classes of metrics: of classes, numbers, images, sounds, texts, retrieval, clusters; `MetricCollection`, states, arithmetic"""

import torch
import torchmetrics
from torchmetrics import (
    classification,
    clustering,
    image,
    nominal,
    regression,
    retrieval,
    text,
)

torch.manual_seed(0)
p = torch.rand(40, 3).softmax(1)
t = torch.randint(0, 3, (40,))
b, tb = torch.rand(40), torch.randint(0, 2, (40,))
many_p, tl = torch.rand(40, 3), torch.randint(0, 2, (40, 3))
for name in [
    "Accuracy",
    "AUROC",
    "AveragePrecision",
    "CalibrationError",
    "CohenKappa",
    "ConfusionMatrix",
    "F1Score",
    "FBetaScore",
    "HammingDistance",
    "HingeLoss",
    "JaccardIndex",
    "MatthewsCorrCoef",
    "Precision",
    "Recall",
    "Specificity",
    "StatScores",
    "ROC",
    "PrecisionRecallCurve",
]:
    more = {"beta": 2.0} if name == "FBetaScore" else {}
    for task, data in {
        "binary": (b, tb),
        "multiclass": (p, t),
        "multilabel": (many_p, tl),
    }.items():
        if task == "multilabel" and name in (
            "CalibrationError",
            "CohenKappa",
            "HingeLoss",
        ):
            continue
        many = {"multiclass": {"num_classes": 3}, "multilabel": {"num_labels": 3}}.get(
            task, {}
        )
        if name in ("ROC", "PrecisionRecallCurve"):
            many["thresholds"] = 5
        metric = getattr(torchmetrics, name)(task=task, **many, **more)
        metric.update(data[0][:20], data[1][:20])
        metric.update(data[0][20:], data[1][20:])
        value = metric.compute()
        value = (
            value
            if isinstance(value, torch.Tensor)
            else torch.cat([v.flatten() for v in value])
        )
        print(name, task, value.float().flatten()[:5])
print(
    classification.MultilabelRankingLoss(3)(many_p, tl),
    classification.MultilabelCoverageError(3)(many_p, tl),
)
print(classification.Dice()(p, t) if hasattr(classification, "Dice") else "")
x, y = torch.randn(40), torch.randn(40)
for name in [
    "MeanSquaredError",
    "MeanAbsoluteError",
    "MeanAbsolutePercentageError",
    "MeanSquaredLogError",
    "R2Score",
    "PearsonCorrCoef",
    "SpearmanCorrCoef",
    "KendallRankCorrCoef",
    "ExplainedVariance",
    "ConcordanceCorrCoef",
    "LogCoshError",
    "RelativeSquaredError",
    "SymmetricMeanAbsolutePercentageError",
    "WeightedMeanAbsolutePercentageError",
    "TweedieDevianceScore",
    "MinkowskiDistance",
]:
    more = {"p": 3} if name == "MinkowskiDistance" else {}
    inputs = (x.abs(), y.abs()) if "Log" in name else (x, y)
    print(name, getattr(regression, name)(**more)(*inputs))
print(
    regression.CosineSimilarity()(x.view(8, 5), y.view(8, 5)),
    regression.KLDivergence()(p, p.flip(0)),
)
a, c = torch.rand(2, 3, 48, 48), torch.rand(2, 3, 48, 48)
for metric in (
    image.PeakSignalNoiseRatio(data_range=1.0),
    image.StructuralSimilarityIndexMeasure(data_range=1.0),
    image.UniversalImageQualityIndex(),
    image.TotalVariation(),
    image.SpectralAngleMapper(),
    image.ErrorRelativeGlobalDimensionlessSynthesis(),
    image.RelativeAverageSpectralError(),
    image.RootMeanSquaredErrorUsingSlidingWindow(),
    image.SpatialCorrelationCoefficient(),
):
    print(
        type(metric).__name__,
        metric(a) if "Total" in type(metric).__name__ else metric(a, c),
    )
print(
    image.MultiScaleStructuralSimilarityIndexMeasure(data_range=1.0, betas=(0.5, 0.5))(
        a, c
    )
)
s, u = torch.randn(2, 400), torch.randn(2, 400)
for name in (
    "SignalNoiseRatio",
    "ScaleInvariantSignalNoiseRatio",
    "ScaleInvariantSignalDistortionRatio",
    "SignalDistortionRatio",
):
    print(name, getattr(torchmetrics.audio, name)()(s, u))
said, meant = (
    ["the cat sat on a mat", "a dog ran"],
    ["the cat sat on the mat", "the dog ran off"],
)
for name in (
    "WordErrorRate",
    "CharErrorRate",
    "MatchErrorRate",
    "WordInfoLost",
    "WordInfoPreserved",
    "EditDistance",
):
    print(name, getattr(text, name)()(said, meant))
print(
    text.BLEUScore()(said, [[m] for m in meant]),
    text.CHRFScore()(said, [[m] for m in meant]),
)
print(text.Perplexity()(torch.randn(2, 5, 7), torch.randint(0, 7, (2, 5))))
groups = torch.arange(40) // 10
for name in (
    "RetrievalMAP",
    "RetrievalMRR",
    "RetrievalNormalizedDCG",
    "RetrievalPrecision",
    "RetrievalRecall",
    "RetrievalHitRate",
    "RetrievalFallOut",
):
    print(name, getattr(retrieval, name)()(b, tb, indexes=groups))
for name in (
    "MutualInfoScore",
    "NormalizedMutualInfoScore",
    "AdjustedRandScore",
    "RandScore",
    "HomogeneityScore",
    "FowlkesMallowsIndex",
):
    print(name, getattr(clustering, name)()(t, groups))
print(clustering.DaviesBouldinScore()(p, t), clustering.CalinskiHarabaszScore()(p, t))
print(nominal.CramersV(3)(t, t.roll(1)), nominal.TheilsU(3)(t, t.roll(1)))
both = torchmetrics.MetricCollection(
    {
        "a": torchmetrics.Accuracy("multiclass", num_classes=3),
        "f": torchmetrics.F1Score("multiclass", num_classes=3),
    }
)
both.update(p, t)
print({k: v.item() for k, v in both.compute().items()})
both.persistent(True)
print(len(both.state_dict()))
mean = torchmetrics.MeanMetric()
for value in (1, 2, 6):
    mean.update(value)
print(
    mean.compute(),
    (mean * 2 + 1).compute(),
    torchmetrics.SumMetric()(torch.tensor([1.0, 2])),
)
tracked = torchmetrics.wrappers.MetricTracker(
    torchmetrics.MeanSquaredError(), maximize=False
)
for k in range(3):
    tracked.increment()
    tracked.update(x, y * k)
print(tracked.compute_all(), tracked.best_metric(return_step=True))
print(torchmetrics.wrappers.MinMaxMetric(torchmetrics.MeanSquaredError())(x, y))
