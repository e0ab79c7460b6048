"""LoRA of a small GPT-2: training, `save_pretrained()` and `from_pretrained()`, `disable_adapter()`, a second adapter, `merge_adapter()`, `merge_and_unload()`"""

import tempfile

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
sizes = {"n_positions": 16, "n_embd": 32, "n_layer": 2, "n_head": 2}
config = GPT2Config(vocab_size=50, bos_token_id=0, eos_token_id=None, **sizes)
base = GPT2LMHeadModel(config)
options = {"r": 4, "target_modules": ["c_attn"], "fan_in_fan_out": True}
net = get_peft_model(base, LoraConfig(**options))
net.print_trainable_parameters()
x = torch.randint(0, 50, (2, 7))
chosen = [p for p in net.parameters() if p.requires_grad]
optimizer = torch.optim.AdamW(chosen, 1e-2)
for _ in range(5):
    optimizer.zero_grad()
    loss = net(input_ids=x, labels=x).loss
    loss.backward()
    optimizer.step()
    print(loss.item())
net.eval()
wanted = net(input_ids=x).logits
print(wanted.sum().item())
with net.disable_adapter():
    print(net(input_ids=x).logits.sum().item())
with tempfile.TemporaryDirectory() as folder:
    net.save_pretrained(folder)
    torch.manual_seed(0)
    other = PeftModel.from_pretrained(GPT2LMHeadModel(config), folder).eval()
    print(torch.equal(other(input_ids=x).logits, wanted))
net.add_adapter("second", LoraConfig(**options))
net.set_adapter("second")
print(net.active_adapter, net(input_ids=x).logits.sum().item())
net.set_adapter("default")
net.merge_adapter()
print((net(input_ids=x).logits - wanted).abs().max().item() < 1e-4)
net.unmerge_adapter()
print((net(input_ids=x).logits - wanted).abs().max().item() < 1e-4)
whole = net.merge_and_unload()
print(type(whole).__name__, whole(x, labels=x).loss.item())
