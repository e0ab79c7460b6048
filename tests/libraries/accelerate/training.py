"""`Accelerator.prepare()`, accumulated and clipped gradients, `gather_for_metrics()`, a state saved and loaded"""

import tempfile

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed

set_seed(1)
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
net = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
optimizer = torch.optim.AdamW(net.parameters(), 0.05)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)
x = torch.randn(32, 3)
data = torch.utils.data.TensorDataset(x, x.prod(1, keepdim=True))
loader = torch.utils.data.DataLoader(data, batch_size=8, shuffle=True)
net, optimizer, loader, schedule = accelerator.prepare(net, optimizer, loader, schedule)
for epoch in range(5):
    for inputs, labels in loader:
        with accelerator.accumulate(net):
            loss = torch.nn.functional.mse_loss(net(inputs), labels)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
    print(epoch, loss.item(), schedule.get_last_lr())
with tempfile.TemporaryDirectory() as folder:
    accelerator.save_state(folder)
    before = accelerator.unwrap_model(net)[0].weight.clone()
    with torch.no_grad():
        net[0].weight.zero_()
    accelerator.load_state(folder)
    print(torch.equal(before, net[0].weight))
wrong = sum(
    (accelerator.gather_for_metrics(net(inputs)).sign() != labels.sign()).sum().item()
    for inputs, labels in loader
)
print(wrong)
