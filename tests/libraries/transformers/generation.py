"""`generate()`: greedy, beams, sampling, `top_p`, penalties, a static cache, a streamer, stopping, an assistant, left padding"""

import torch
import transformers
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    LogitsProcessor,
    StoppingCriteria,
    StoppingCriteriaList,
)

transformers.logging.set_verbosity_error()
torch.manual_seed(0)
sizes = {"n_positions": 64, "n_embd": 32, "n_layer": 2, "n_head": 2}
gpt2 = GPT2LMHeadModel(
    GPT2Config(vocab_size=50, bos_token_id=0, eos_token_id=None, **sizes)
).eval()
sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
heads = {"num_attention_heads": 4, "num_key_value_heads": 2}
llama = LlamaForCausalLM(
    LlamaConfig(vocab_size=50, eos_token_id=None, **sizes, **heads)
).eval()
with torch.no_grad():  # weights that say more than those of the start
    for parameter in [*gpt2.parameters(), *llama.parameters()]:
        if parameter.dim() == 2:
            parameter.mul_(8)


class Even(LogitsProcessor):
    def __call__(self, ids, scores):
        scores[:, 1::2] = -torch.inf
        return scores


class Short(StoppingCriteria):
    def __call__(self, ids, scores, **options):
        return torch.full((len(ids),), ids.shape[1] >= 10)


class Streamer:
    def put(self, value):
        print("put", value.tolist())

    def end(self):
        print("end")


x = torch.randint(1, 50, (2, 7))
mask = torch.ones_like(x)
mask[0, :3] = 0
WAYS = {
    "greedy": {},
    "no cache": {"use_cache": False},
    "left padding": {"attention_mask": mask},
    "beams": {"num_beams": 3, "num_return_sequences": 2, "length_penalty": 0.5},
    "sampling": {"do_sample": True, "temperature": 0.7, "top_k": 5},
    "top_p": {"do_sample": True, "top_p": 0.8, "top_k": 0},
    "min_p": {"do_sample": True, "min_p": 0.05},
    "typical": {"do_sample": True, "typical_p": 0.9},
    "penalties": {"repetition_penalty": 1.5, "no_repeat_ngram_size": 2},
    "sampled beams": {"num_beams": 2, "do_sample": True},
    "static cache": {"cache_implementation": "static"},
    "processor": {"logits_processor": [Even()]},
    "stopping": {"stopping_criteria": StoppingCriteriaList([Short()])},
    "bad words": {"bad_words_ids": [[3], [4, 5]]},
    "eos": {"eos_token_id": [7, 9, 11, 13, 15]},
}
for net in (gpt2, llama):
    for name, options in WAYS.items():
        torch.manual_seed(1)
        options = {"max_new_tokens": 6, "do_sample": False, "pad_token_id": 0} | options
        print(name, net.generate(x, **options)[:, 7:].tolist())
    found = net.generate(
        x,
        max_new_tokens=3,
        do_sample=False,
        pad_token_id=0,
        output_scores=True,
        return_dict_in_generate=True,
        output_attentions=True,
    )
    print(
        len(found.scores),
        net.compute_transition_scores(
            found.sequences, found.scores, normalize_logits=True
        ),
    )
    net.generate(
        x[:1], max_new_tokens=2, do_sample=False, pad_token_id=0, streamer=Streamer()
    )
print(
    llama.generate(
        x[:1], assistant_model=llama, max_new_tokens=4, do_sample=False, pad_token_id=0
    )[:, 7:].tolist()
)
first = llama(x[:, :4], use_cache=True)
second = llama(x[:, 4:], past_key_values=first.past_key_values)
print((second.logits - llama(x).logits[:, 4:]).abs().max().item() < 1e-3)
