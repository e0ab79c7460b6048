"""`NeuralNetClassifier` and `NeuralNetRegressor` in a pipeline and in `GridSearchCV`, callbacks, parameters in files"""

import tempfile

import numpy
import torch
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from skorch import NeuralNetClassifier, NeuralNetRegressor
from skorch.callbacks import EarlyStopping, EpochScoring, LRScheduler


class Net(torch.nn.Module):
    def __init__(self, width=4, out=2):
        super().__init__()
        self.first, self.second = torch.nn.Linear(4, width), torch.nn.Linear(width, out)

    def forward(self, x):
        return self.second(torch.tanh(self.first(x)))


torch.manual_seed(0)
x = torch.randn(120, 4).numpy()
y = (x[:, 0] * x[:, 1] > 0).astype(numpy.int64)
options = {
    "criterion": torch.nn.CrossEntropyLoss,
    "verbose": 0,
    "iterator_train__shuffle": True,
}
model = NeuralNetClassifier(Net, max_epochs=10, lr=0.5, module__width=16, **options)
model.fit(x, y)
print(model.history[:, "train_loss"][-1], (model.predict(x) == y).mean())
print(model.predict_proba(x)[:2].sum(1).round(4))
pipe = Pipeline([("scale", StandardScaler()), ("net", model)])
print(cross_val_score(pipe, x.astype("float32"), y, cv=2).mean())
search = GridSearchCV(
    model, {"lr": [0.1, 0.5], "module__width": [4, 16]}, cv=2, refit=True
)
search.fit(x, y)
print(search.best_params_, search.best_score_)
with tempfile.TemporaryDirectory() as folder:
    model.save_params(f_params=f"{folder}/p.pt", f_history=f"{folder}/h.json")
    other = NeuralNetClassifier(Net, module__width=16, **options).initialize()
    other.load_params(f_params=f"{folder}/p.pt", f_history=f"{folder}/h.json")
    print((other.predict_proba(x) == model.predict_proba(x)).all(), len(other.history))
calls = [EarlyStopping(patience=3), LRScheduler("StepLR", step_size=5)]
calls.append(EpochScoring("r2", lower_is_better=False))
model = NeuralNetRegressor(
    Net, max_epochs=12, lr=0.1, module__out=1, callbacks=calls, verbose=0
)
model.fit(x, x[:, :1] - x[:, 1:2])
print(model.history[-1, "valid_loss"], model.history[-1, "r2"])
