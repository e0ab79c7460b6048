"""IA3, LoHa, LoKr, OFT, prefix and prompt tuning, DoRA of a small Llama: a step, merged where the method merges"""

import torch
from peft import (
    IA3Config,
    LoHaConfig,
    LoKrConfig,
    LoraConfig,
    OFTConfig,
    PrefixTuningConfig,
    PromptTuningConfig,
    get_peft_model,
)
from transformers import LlamaConfig, LlamaForCausalLM

sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
heads = {"num_attention_heads": 4, "num_key_value_heads": 2}
config = LlamaConfig(vocab_size=50, eos_token_id=None, **sizes, **heads)
where = {"target_modules": ["q_proj", "v_proj"]}
METHODS = {
    "IA3": IA3Config(feedforward_modules=[], **where),
    "LoHa": LoHaConfig(r=4, **where),
    "LoKr": LoKrConfig(r=4, **where),
    "OFT": OFTConfig(oft_block_size=4, **where),
    "DoRA": LoraConfig(use_dora=True, r=4, **where),
    "prefix": PrefixTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=3),
    "prompt": PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=3),
}
for name, method in METHODS.items():
    torch.manual_seed(0)
    net = get_peft_model(LlamaForCausalLM(config), method)
    x = torch.randint(2, 50, (2, 7))
    optimizer = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], 0.1)
    for _ in range(2):
        loss = net(input_ids=x, labels=x).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(
        name, sum(p.numel() for p in net.parameters() if p.requires_grad), loss.item()
    )
    if hasattr(net, "merge_and_unload") and name not in ("prefix", "prompt"):
        print(net.merge_and_unload()(x, labels=x).loss.item())
