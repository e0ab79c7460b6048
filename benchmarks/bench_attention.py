"""Attention and a small GPT: milliseconds a call and peak memory, beside PyTorch.

python benchmarks/bench_attention.py [rounds]
"""

import subprocess
import sys
from pathlib import Path

from compare import compare, libraries, scopes_of

# (batch, heads, length, head size)
SHAPES = [(8, 6, 256, 64), (2, 6, 1024, 64), (1, 6, 4096, 64)]

SETUP = """
nn, F = torch.nn, torch.nn.functional
inputs = {}
for shape in SHAPES:
    inputs[shape] = [torch.randn(*shape, requires_grad=True) for _ in range(3)]

def learn(shape, causal):
    q, k, v = inputs[shape]
    torch.autograd.grad(
        F.scaled_dot_product_attention(q, k, v, is_causal=causal).sum(), (q, k, v)
    )
"""

MODELS = """
class Attention(nn.Module):
    def __init__(self, size, heads):
        super().__init__()
        self.heads = heads
        self.inward = nn.Linear(size, 3 * size)
        self.outward = nn.Linear(size, size)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (
            part.view(b, t, self.heads, c // self.heads).transpose(1, 2)
            for part in self.inward(x).split(c, dim=2)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.outward(y.transpose(1, 2).contiguous().view(b, t, c))

class Block(nn.Module):
    def __init__(self, size, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(size), nn.LayerNorm(size)
        self.attention = Attention(size, heads)
        self.wide, self.narrow = nn.Linear(size, 4 * size), nn.Linear(4 * size, size)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.narrow(F.gelu(self.wide(self.norm2(x))))

class GPT(nn.Module):
    def __init__(self, words=65, length=256, size=384, heads=6, layers=6):
        super().__init__()
        self.words = nn.Embedding(words, size)
        self.places = nn.Embedding(length, size)
        self.blocks = nn.Sequential(*(Block(size, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(size)
        self.head = nn.Linear(size, words, bias=False)

    def forward(self, x):
        y = self.words(x) + self.places(torch.arange(x.shape[1]))
        return self.head(self.norm(self.blocks(y)))

torch.manual_seed(0)
gpt = GPT()
optimizer = torch.optim.AdamW(gpt.parameters(), lr=1e-3)
text = torch.randint(0, 65, (8, 257))

def step():
    scores = gpt(text[:, :-1])
    loss = F.cross_entropy(scores.reshape(-1, 65), text[:, 1:].reshape(-1))
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    return loss

x = torch.randn(8, 128, 256)
encoder = nn.TransformerEncoder(
    nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True), 2
)
def encode():
    encoder.zero_grad()
    encoder(x).sum().backward()
"""

CASES = [("GPT: 6 x 384, 8 x 256, AdamW", "step()")]
CASES += [("TransformerEncoder: 2 x 256, both", "encode()")]
for shape in SHAPES:
    for causal in (True, False):
        call = f"(*inputs[{shape}], is_causal={causal})"
        label = f"{'x'.join(map(str, shape))}{' causal' if causal else ''}"
        CASES += [
            (label, f"with torch.no_grad(): F.scaled_dot_product_attention{call}"),
            (f"{label}, both", f"learn({shape}, {causal})"),
        ]


def status(name):
    """Kilobytes of this process, as Linux counts them."""
    text = Path("/proc/self/status").read_text()
    return int(text.split(f"{name}:")[1].split()[0])


def peak(library):
    """Megabytes that one pass over the longest sequences adds to the process."""
    scope = {"torch": libraries(library)[library], "SHAPES": SHAPES}
    exec(SETUP, scope)
    scope["learn"](SHAPES[0], True)
    Path("/proc/self/clear_refs").write_text("5")  # VmHWM begins anew
    before = status("VmRSS")
    scope["learn"](SHAPES[-1], True)
    print(f"{library}: {(status('VmHWM') - before) / 1024:.0f} MB", flush=True)


def main():
    if sys.argv[1:2] == ["peak"]:
        return peak(sys.argv[2])
    scopes = scopes_of(SETUP + MODELS, SHAPES=SHAPES)
    compare(CASES, scopes, "ms", 7)
    print(f"memory of {SHAPES[-1]}, forward and backward:")
    for name in scopes:
        subprocess.run([sys.executable, __file__, "peak", name], check=True)


if __name__ == "__main__":
    main()
