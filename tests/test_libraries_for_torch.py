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
    "peft",
    "pytorch_lightning",
    "safetensors.torch",
    "skorch",
    "tensorboard",
    "timm",
    "torchdiffeq",
    "torchinfo",
    "torchmetrics",
    "transformers.models.bert.modeling_bert",
    "transformers.models.gpt2.modeling_gpt2",
    "transformers.models.llama.modeling_llama",
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
    "peft": """
import torch
from peft import LoraConfig, get_peft_model
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
sizes = {"n_positions": 16, "n_embd": 32, "n_layer": 2, "n_head": 2}
config = GPT2Config(vocab_size=50, bos_token_id=0, eos_token_id=None, **sizes)
options = LoraConfig(r=4, target_modules=["c_attn"], fan_in_fan_out=True)
net = get_peft_model(GPT2LMHeadModel(config), options)
x = torch.randint(0, 50, (2, 7))
chosen = [p for p in net.parameters() if p.requires_grad]
optimizer = torch.optim.AdamW(chosen, 1e-2)
losses = []
for _ in range(9):
    optimizer.zero_grad()
    loss = net(input_ids=x, labels=x).loss
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
assert len(chosen) == 4 and losses[-1] < losses[0] - 0.1, losses
assert net.merge_and_unload()(x, labels=x).loss < losses[-1]
""",
    "opt_einsum": """
import torch
from opt_einsum import contract, contract_expression

a, b, c = torch.ones(2, 3, requires_grad=True), torch.ones(3, 4), torch.ones(4)
found = contract("ij,jk,k->i", a, b, c)
assert found.tolist() == [12, 12]
found.sum().backward()
assert a.grad.tolist() == [[4, 4, 4], [4, 4, 4]]
assert torch.equal(contract_expression("ij,jk->ik", (2, 3), (3, 4))(a, b), a @ b)
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
    "safetensors": """
import torch
from safetensors.torch import load_file, load_model, save_file, save_model

x = {"a": torch.arange(6.0).view(2, 3), "b": torch.ones(2, dtype=torch.bfloat16)}
save_file(x, "x.safetensors")
assert all(torch.equal(x[k], v) for k, v in load_file("x.safetensors").items())
net, other = torch.nn.Linear(2, 3), torch.nn.Linear(2, 3)
save_model(net, "net.safetensors")
load_model(other, "net.safetensors")
assert torch.equal(net.weight, other.weight)
""",
    "skorch": """
import numpy
import torch
from skorch import NeuralNetClassifier

torch.manual_seed(0)
x = torch.randn(200, 4).numpy()
y = (x[:, 0] + x[:, 1] > 0).astype(numpy.int64)
net = torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.Softmax(-1))
model = NeuralNetClassifier(net, max_epochs=20, lr=0.5, verbose=0)
assert (model.fit(x, y).predict(x) == y).mean() > 0.9
""",
    "timm": """
import timm
import torch

net = timm.create_model("resnet18", num_classes=10)
assert net(torch.randn(2, 3, 64, 64)).shape == (2, 10)
net(torch.randn(2, 3, 64, 64)).sum().backward()
assert net.conv1.weight.grad.abs().sum() > 0
""",
    "torchdiffeq": """
import torch
from torchdiffeq import odeint, odeint_adjoint

layer = torch.nn.Linear(1, 1, bias=False)
layer.weight.data = torch.tensor([[-1.0]])


class Decay(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = layer

    def forward(self, t, y):
        return self.layer(y)


t = torch.tensor([0.0, 1.0])
for method in ("dopri5", "rk4", "bosh3"):
    options = {"options": {"step_size": 0.01}} if "4" in method else {}
    y = odeint(Decay(), torch.ones(1), t, method=method, **options)[-1]
    assert abs(y - torch.exp(torch.tensor(-1.0))) < 1e-4, (method, y)
odeint_adjoint(Decay(), torch.ones(1), t)[-1].sum().backward()
assert abs(layer.weight.grad - torch.exp(torch.tensor(-1.0))) < 1e-3
""",
    "torchinfo": """
import torch
from torchinfo import summary

net = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.Flatten())
found = summary(net, input_size=(2, 1, 8, 8), verbose=0, device="cpu")
assert (found.total_params, found.total_mult_adds) == (40, 2880)
""",
    "torchmetrics": """
import torch
import torchmetrics

p = torch.tensor([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.3, 0.7]])
t = torch.tensor([0, 1, 1, 1])
accuracy = torchmetrics.Accuracy(task="multiclass", num_classes=2)
for i in range(4):
    accuracy.update(p[i : i + 1], t[i : i + 1])
assert accuracy.compute() == 0.75
assert torchmetrics.AUROC(task="binary")(p[:, 1], t) == 1
assert torchmetrics.MeanSquaredError()(p[:, 0], p[:, 1]) > 0
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
    "transformers.llama": """
import torch
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
heads = {"num_attention_heads": 4, "num_key_value_heads": 2}
config = LlamaConfig(vocab_size=50, eos_token_id=None, **sizes, **heads)
net = LlamaForCausalLM(config)
x = torch.randint(2, 50, (2, 7))
optimizer = torch.optim.AdamW(net.parameters(), 1e-2)
losses = []
for _ in range(3):
    loss = net(x, labels=x).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
assert 3 < losses[0] < 5 and losses[2] < losses[0] - 0.3, losses
net.eval()
for options in ({}, {"num_beams": 2}):
    options |= {"max_new_tokens": 4, "do_sample": False, "pad_token_id": 0}
    made = net.generate(x, **options)
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


TWO_GPUS = """
import pytorch_lightning
import torch


class Net(pytorch_lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 1)

    def training_step(self, batch, index):
        return torch.nn.functional.mse_loss(self.layer(batch[0]), batch[1])

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


torch.manual_seed(0)
x = torch.randn(16, 3)
data = torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True))
options = {"accelerator": "gpu", "devices": 2, "strategy": "ddp"}
options |= {"logger": False, "enable_checkpointing": False, "max_epochs": 9}
trainer = pytorch_lightning.Trainer(**options)
net = Net()
trainer.fit(net, torch.utils.data.DataLoader(data, batch_size=4))
with torch.no_grad():
    loss = ((net.layer(x) - x.sum(1, keepdim=True)) ** 2).mean().item()
print(trainer.global_rank, trainer.global_step, loss < 0.1, net.layer.weight.tolist())
"""


@pytest.mark.slow
def test_lightning_on_two_gpus(tmp_path):
    """Two ranks of DistributedDataParallel, on simulated GPUs."""
    if find_spec("pytorch_lightning") is None:
        pytest.skip("pytorch_lightning is not installed")
    (tmp_path / "program.py").write_text(TWO_GPUS)
    launch = ["-m", "pydevtensor", "launch", "--nproc-per-node", "2"]
    out = python(
        "",
        arguments=[*launch, str(tmp_path / "program.py")],
        PYDEVTENSOR_SIM_GPUS="2",
    )
    rows = sorted(line for line in out.splitlines() if " 18 True [[" in line)
    assert [row[0] for row in rows] == ["0", "1"] and rows[0][1:] == rows[1][1:]
