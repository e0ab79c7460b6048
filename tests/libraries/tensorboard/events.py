"""`SummaryWriter`: scalars, histograms, images, text, hyperparameters, read by the package's loader"""

import tempfile

import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch.utils.tensorboard import SummaryWriter

torch.manual_seed(0)
with tempfile.TemporaryDirectory() as folder:
    with SummaryWriter(folder) as writer:
        for step in range(5):
            writer.add_scalar("loss", torch.tensor(1.0 / (step + 1)), step)
            writer.add_histogram("weights", torch.randn(100), step)
        writer.add_scalars("both", {"a": 1, "b": 2}, 0)
        writer.add_image("image", torch.rand(3, 4, 4), 0)
        writer.add_images("images", torch.rand(2, 3, 4, 4), 0)
        writer.add_text("text", "words", 0)
        writer.add_hparams({"lr": 0.1}, {"accuracy": 0.5})
    events = EventAccumulator(folder)
    events.Reload()
    tags = events.Tags()
    print(
        {
            name: sorted(tags[name])
            for name in ("images", "histograms", "scalars", "tensors")
        }
    )
    print([(e.step, e.value) for e in events.Scalars("loss")])
    found = events.Histograms("weights")[-1].histogram_value
    print(found.min, found.max, found.num, found.sum)
