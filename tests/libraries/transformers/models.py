"""twenty models from configurations: forward, a step of AdamW, `save_pretrained()` and `from_pretrained()`"""

import tempfile

import torch
import transformers

transformers.logging.set_verbosity_error()
SMALL = {
    "vocab_size": 50,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
}
SMALL |= {"intermediate_size": 64, "pad_token_id": 0}
LLAMA = SMALL | {"num_key_value_heads": 2, "eos_token_id": None, "bos_token_id": 1}
GPT = {"vocab_size": 50, "n_positions": 16, "n_embd": 32, "n_layer": 2, "n_head": 4}
GPT |= {"bos_token_id": 0, "eos_token_id": None}
T5 = {
    "vocab_size": 50,
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 64,
    "num_layers": 2,
    "num_heads": 4,
}
T5 |= {"decoder_start_token_id": 0}
BART = {"vocab_size": 50, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2}
BART |= {
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64,
}
BART |= {"decoder_ffn_dim": 64, "max_position_embeddings": 32}
TEXT = {
    "Bert": ("BertForMaskedLM", SMALL),
    "Roberta": (
        "RobertaForSequenceClassification",
        SMALL | {"max_position_embeddings": 32},
    ),
    "Electra": ("ElectraForTokenClassification", SMALL | {"embedding_size": 16}),
    "DistilBert": (
        "DistilBertForSequenceClassification",
        {"vocab_size": 50, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64},
    ),
    "Albert": ("AlbertForMaskedLM", SMALL | {"embedding_size": 16}),
    "DebertaV2": (
        "DebertaV2ForSequenceClassification",
        SMALL | {"relative_attention": True, "pos_att_type": ["p2c", "c2p"]},
    ),
    "GPT2": ("GPT2LMHeadModel", GPT),
    "GPTNeoX": ("GPTNeoXForCausalLM", SMALL),
    "OPT": (
        "OPTForCausalLM",
        {
            "vocab_size": 50,
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "ffn_dim": 64,
            "word_embed_proj_dim": 32,
            "max_position_embeddings": 32,
        },
    ),
    "Llama": ("LlamaForCausalLM", LLAMA),
    "Mistral": ("MistralForCausalLM", LLAMA | {"sliding_window": 4}),
    "Qwen2": ("Qwen2ForCausalLM", LLAMA),
    "Gemma": ("GemmaForCausalLM", LLAMA | {"head_dim": 8}),
    "Phi": ("PhiForCausalLM", LLAMA),
    "Mixtral": ("MixtralForCausalLM", LLAMA | {"num_local_experts": 4}),
    "T5": ("T5ForConditionalGeneration", T5),
    "Bart": ("BartForConditionalGeneration", BART),
}
for kind, (name, options) in TEXT.items():
    torch.manual_seed(0)
    config = getattr(transformers, f"{kind}Config")(**options)
    net = getattr(transformers, name)(config)
    x = torch.randint(2, 50, (2, 7))
    labels = (
        torch.tensor([0, 1])
        if "Sequence" in name
        else x.clamp(max=1)
        if "Token" in name
        else x
    )
    optimizer = torch.optim.AdamW(net.parameters(), 1e-2)
    net.eval()
    for _ in range(2):
        loss = net(input_ids=x, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        wanted = net(input_ids=x, labels=labels).logits
        net.save_pretrained(folder)
        again = type(net).from_pretrained(folder).eval()
        same = torch.equal(again(input_ids=x, labels=labels).logits, wanted)
    print(name, loss.item(), wanted.float().abs().mean().item(), same)
PICTURES = {
    "ViT": ("ViTForImageClassification", {"image_size": 32, "patch_size": 8}),
    "CLIPVision": ("CLIPVisionModel", {"image_size": 32, "patch_size": 8}),
    "ConvNext": (
        "ConvNextForImageClassification",
        {"hidden_sizes": [8, 16, 16, 16], "depths": [1, 1, 1, 1]},
    ),
}
for kind, (name, options) in PICTURES.items():
    torch.manual_seed(0)
    small = (
        {}
        if kind == "ConvNext"
        else {k: SMALL[k] for k in SMALL if k not in ("vocab_size", "pad_token_id")}
    )
    net = getattr(transformers, name)(
        getattr(transformers, f"{kind}Config")(**options, **small)
    ).eval()
    found = net(pixel_values=torch.randn(2, 3, 32, 32))
    value = found[0]
    value.sum().backward()
    print(name, tuple(value.shape), value.abs().mean().item())
