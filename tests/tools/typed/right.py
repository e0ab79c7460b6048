"""A training program without a mistake, as a reader of a book writes it with types."""

import pydevtensor as torch
from pydevtensor import nn, optim
from pydevtensor.nn import functional as F
from pydevtensor.optim.lr_scheduler import CosineAnnealingLR, ReduceLROnPlateau, StepLR
from pydevtensor.utils.data import (
    DataLoader,
    Dataset,
    RandomSampler,
    Sampler,
    Subset,
    TensorDataset,
    random_split,
)

Pair = tuple[torch.Tensor, torch.Tensor]


class Squares(Dataset[Pair]):
    """x and x * x."""

    def __init__(self, count: int) -> None:
        self.x = torch.linspace(-1, 1, count).reshape(-1, 1)

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> Pair:
        x = self.x[index]
        return x, x * x


class MLP(nn.Module):
    """Two hidden layers."""

    def __init__(self, inputs: int, hidden: int, outputs: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.Tanh()
        )
        self.norm = nn.LayerNorm(hidden)
        self.drop = nn.Dropout(0.1)
        self.head = nn.Linear(hidden, outputs, bias=False)
        self.scale = nn.Parameter(torch.ones(1))
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        features: torch.Tensor = self.drop(self.norm(self.body(x)))
        result: torch.Tensor = self.head(F.relu(features)) * self.scale
        return result


def collate(samples: list[Pair]) -> Pair:
    return torch.stack([x for x, _ in samples]), torch.stack([y for _, y in samples])


def evaluate(net: nn.Module, loader: DataLoader[Pair], device: torch.device) -> float:
    net.eval()
    total = 0.0
    with torch.no_grad():
        for x, y in loader:
            total += F.mse_loss(net(x.to(device)), y.to(device)).item()
    net.train()
    return total / len(loader)


def accuracy(net: nn.Module, loader: DataLoader[tuple[torch.Tensor, ...]]) -> float:
    right = count = 0
    with torch.inference_mode():
        for x, label in loader:
            predicted: torch.Tensor = net(x).argmax(dim=1)
            right += int((predicted == label).sum())
            count += label.size(0)
    return right / count


def fit(epochs: int = 2) -> float:
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train, valid = random_split(Squares(64), [0.75, 0.25])
    loader = DataLoader(train, batch_size=16, shuffle=True, collate_fn=collate)
    net = MLP(1, 8, 1).to(device)
    optimizer = optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    schedule = StepLR(optimizer, step_size=1, gamma=0.5)
    loss_function = nn.MSELoss()
    for epoch in range(epochs):
        mean = 0.0
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            optimizer.zero_grad()
            loss: torch.Tensor = loss_function(net(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            mean += loss.item() / len(loader)
        schedule.step()
        rates: list[float] = schedule.get_last_lr()
        print(f"epoch {epoch}: {mean:.3f}, rate {rates[0]:.3f}")
    torch.save(net.state_dict(), "net.pt")
    again = MLP(1, 8, 1)
    again.load_state_dict(torch.load("net.pt", map_location="cpu"))
    weights: dict[str, torch.Tensor] = again.state_dict()
    print(sum(weight.numel() for weight in weights.values()))
    return evaluate(again.cpu(), DataLoader(valid, batch_size=4), torch.device("cpu"))


def classify() -> float:
    x, label = torch.randn(40, 5), torch.randint(0, 3, (40,))
    data = TensorDataset(x, label)
    sampler: Sampler[int] = RandomSampler(data, num_samples=20)
    batches = DataLoader(data, batch_size=10, sampler=sampler, num_workers=0)
    net = nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
    groups = [
        {"params": net[0].parameters(), "lr": 1e-3},
        {"params": net[3].parameters()},
    ]
    optimizer = optim.AdamW(groups, lr=1e-2, betas=(0.9, 0.99))
    cosine = CosineAnnealingLR(optimizer, T_max=4)
    plateau = ReduceLROnPlateau(optimizer, patience=1)
    for rows, labels in batches:
        loss = F.cross_entropy(net(rows), labels, label_smoothing=0.1)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        cosine.step()
        plateau.step(loss.item())
    part = Subset(data, [0, 1, 2])
    first, second = part[0]
    print(first.shape, int(second), len(part))
    return accuracy(net.eval(), DataLoader(data, batch_size=8))


if __name__ == "__main__":
    print(fit(), classify())
