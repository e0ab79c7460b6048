"""Libraries written for PyTorch run where torch is this package.

Those of TRIED in tools/compatibility.py, where they are installed: pip install --no-deps
leaves PyTorch out.
"""

from importlib.util import find_spec

import pytest
from isolated import python

IMPORTS = [
    "accelerate",
    "einops.layers.torch",
    "opt_einsum",
    "pytorch_lightning",
    "safetensors.torch",
    "skorch",
    "timm",
    "torchdiffeq",
    "torchinfo",
    "torchmetrics",
    "transformers.models.bert.modeling_bert",
    "transformers.models.gpt2.modeling_gpt2",
]
PROGRAMS = {
    "accelerate": """
import torch
from accelerate import Accelerator

accelerator = Accelerator(cpu=True)
net = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
x = torch.randn(16, 3)
data = torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True))
loader = torch.utils.data.DataLoader(data, batch_size=4)
net, optimizer, loader = accelerator.prepare(net, optimizer, loader)
losses = []
for _ in range(9):
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = ((net(inputs) - labels) ** 2).mean()
        accelerator.backward(loss)
        optimizer.step()
        losses.append(loss.item())
assert losses[-1] < losses[0] / 10, losses
""",
    "pytorch_lightning": """
import pytorch_lightning
import torch


class Net(pytorch_lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 1)

    def loss(self, batch):
        return torch.nn.functional.mse_loss(self.layer(batch[0]), batch[1])

    def training_step(self, batch, index):
        return self.loss(batch)

    def validation_step(self, batch, index):
        self.log("loss", self.loss(batch))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


torch.manual_seed(0)
x = torch.randn(16, 3)
data = torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True))
loader = torch.utils.data.DataLoader(data, batch_size=4)
options = {"accelerator": "cpu", "logger": False, "default_root_dir": "."}
trainer = pytorch_lightning.Trainer(max_epochs=9, **options)
net = Net()
trainer.fit(net, loader, loader)
# What PyTorch 2.13 gives.
assert abs(trainer.callback_metrics["loss"] - 0.002963) < 1e-5, trainer.callback_metrics
path = trainer.checkpoint_callback.best_model_path
assert torch.equal(Net.load_from_checkpoint(path).layer.weight, net.layer.weight)
""",
    "timm": """
import timm
import torch

net = timm.create_model("resnet18", num_classes=10)
assert net(torch.randn(2, 3, 64, 64)).shape == (2, 10)
net(torch.randn(2, 3, 64, 64)).sum().backward()
assert net.conv1.weight.grad.abs().sum() > 0
""",
    "transformers": """
import torch
from transformers import BertConfig, BertModel, GPT2Config, GPT2LMHeadModel

x = torch.randint(0, 50, (2, 7))
sizes = {"num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
bert = BertModel(BertConfig(vocab_size=50, hidden_size=32, **sizes)).eval()
assert bert(x).last_hidden_state.shape == (2, 7, 32)
sizes = {"n_positions": 16, "n_embd": 32, "n_layer": 2, "n_head": 2}
config = GPT2Config(vocab_size=50, bos_token_id=0, eos_token_id=None, **sizes)
gpt2 = GPT2LMHeadModel(config).eval()
loss = gpt2(x, labels=x).loss
loss.backward()
assert 3 < loss < 5
made = gpt2.generate(x, max_new_tokens=4, do_sample=False, pad_token_id=0)
assert made.shape == (2, 11) and torch.equal(made[:, :7], x)
""",
}


def run(library, code):
    library = library.partition(".")[0]
    if find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    python("", arguments=["-m", "pydevtensor", "run", "-c", code], HF_HUB_OFFLINE="1")


@pytest.mark.slow
@pytest.mark.parametrize("module", IMPORTS)
def test_import(module):
    run(module, f"import {module}")


@pytest.mark.slow
@pytest.mark.parametrize("library", PROGRAMS)
def test_program(library):
    run(library, PROGRAMS[library])
