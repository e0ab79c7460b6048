"""trainer and evaluator, metrics, checkpoints, early stopping, a schedule of the rate"""

import tempfile

import torch
from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
from ignite.handlers import (
    Checkpoint,
    DiskSaver,
    EarlyStopping,
    EMAHandler,
    LinearCyclicalScheduler,
)
from ignite.metrics import (
    Accuracy,
    ConfusionMatrix,
    Fbeta,
    Loss,
    Precision,
    Recall,
    RunningAverage,
)

torch.manual_seed(0)
x = torch.randn(64, 4)
data = torch.utils.data.TensorDataset(x, (x[:, 0] > x[:, 1]).long())
loader = torch.utils.data.DataLoader(data, batch_size=16)
net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
optimizer = torch.optim.SGD(net.parameters(), 0.3, momentum=0.9)
loss = torch.nn.CrossEntropyLoss()
trainer = create_supervised_trainer(net, optimizer, loss)
metrics = {
    "right": Accuracy(),
    "loss": Loss(loss),
    "precision": Precision(average=True),
}
metrics |= {"recall": Recall(), "f": Fbeta(1.0), "matrix": ConfusionMatrix(2)}
evaluator = create_supervised_evaluator(net, metrics)
RunningAverage(output_transform=lambda value: value).attach(trainer, "average")
trainer.add_event_handler(
    Events.ITERATION_STARTED, LinearCyclicalScheduler(optimizer, "lr", 0.1, 0.4, 8)
)
EMAHandler(net, momentum=0.1).attach(trainer)


@trainer.on(Events.EPOCH_COMPLETED)
def evaluate(engine):
    evaluator.run(loader)
    print(engine.state.epoch, engine.state.metrics, evaluator.state.metrics)


stop = EarlyStopping(3, lambda engine: engine.state.metrics["right"], trainer)
evaluator.add_event_handler(Events.COMPLETED, stop)
with tempfile.TemporaryDirectory() as folder:
    saver = DiskSaver(folder, require_empty=False)
    keep = Checkpoint(
        {"net": net, "optimizer": optimizer, "trainer": trainer}, saver, n_saved=1
    )
    trainer.add_event_handler(Events.EPOCH_COMPLETED, keep)
    trainer.run(loader, max_epochs=4)
    weight = net[0].weight.clone()
    torch.nn.init.zeros_(net[0].weight)
    Checkpoint.load_objects({"net": net}, torch.load(keep.last_checkpoint))
    print(torch.equal(weight, net[0].weight))
