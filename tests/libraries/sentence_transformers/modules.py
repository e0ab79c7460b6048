"""a `Transformer` from a configuration, pooling and a dense layer; `encode()`, similarities, three losses"""

import tempfile
from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer, losses, models, util
from transformers import BertConfig, BertModel, BertTokenizerFast

torch.manual_seed(0)
with tempfile.TemporaryDirectory() as folder:
    words = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        *["a", "cat", "dog", "sat", "ran", "on", "the", "mat"],
    ]
    (Path(folder) / "vocab.txt").write_text("\n".join(words))
    BertTokenizerFast(f"{folder}/vocab.txt").save_pretrained(folder)
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    BertModel(
        BertConfig(vocab_size=len(words), intermediate_size=64, **sizes)
    ).save_pretrained(folder)
    word = models.Transformer(folder, max_seq_length=16)
    pooling = models.Pooling(word.get_word_embedding_dimension())
    net = SentenceTransformer(
        modules=[word, pooling, models.Dense(32, 8), models.Normalize()], device="cpu"
    )
    texts = ["the cat sat on the mat", "a dog ran", "the dog sat"]
    found = net.encode(texts, convert_to_tensor=True, show_progress_bar=False)
    print(found.shape, util.cos_sim(found, found))
    print(util.semantic_search(found[:1], found, top_k=2))
    net.save(f"{folder}/saved")
    again = SentenceTransformer(f"{folder}/saved", device="cpu")
    print((again.encode(texts, show_progress_bar=False) == found.cpu().numpy()).all())
    first, second = net.tokenize(texts), net.tokenize(texts[::-1])
    labels = torch.tensor([1.0, 0.0, 1.0])
    for loss in (
        losses.CosineSimilarityLoss(net),
        losses.MultipleNegativesRankingLoss(net),
        losses.ContrastiveLoss(net),
    ):
        value = loss([dict(first), dict(second)], labels)
        value.backward()
        print(type(loss).__name__, value.item())
