"""`UNet2DModel` and `AutoencoderKL` from configurations: training, a pipeline; twelve schedulers"""

import tempfile

import diffusers
import torch

diffusers.logging.set_verbosity_error()
torch.manual_seed(0)
net = diffusers.UNet2DModel(
    sample_size=16,
    in_channels=1,
    out_channels=1,
    layers_per_block=1,
    block_out_channels=(16, 32),
    norm_num_groups=4,
    down_block_types=("DownBlock2D", "AttnDownBlock2D"),
    up_block_types=("AttnUpBlock2D", "UpBlock2D"),
)
x = torch.rand(2, 1, 16, 16)
schedule = diffusers.DDPMScheduler(100)
optimizer = torch.optim.AdamW(net.parameters(), 1e-3)
for _ in range(2):
    noise, t = torch.randn_like(x), torch.randint(0, 100, (2,))
    loss = (net(schedule.add_noise(x, noise, t), t).sample - noise).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
with tempfile.TemporaryDirectory() as folder:
    net.save_pretrained(folder)
    again = diffusers.UNet2DModel.from_pretrained(folder)
    print(torch.equal(again(x, 3).sample, net(x, 3).sample))
pipe = diffusers.DDPMPipeline(net, schedule)
pipe.set_progress_bar_config(disable=True)
print(
    pipe(
        generator=torch.Generator().manual_seed(0),
        num_inference_steps=3,
        output_type="np",
    ).images.mean()
)
for name in [
    "DDIM",
    "DPMSolverMultistep",
    "DPMSolverSinglestep",
    "EulerDiscrete",
    "EulerAncestralDiscrete",
    "HeunDiscrete",
    "KDPM2Discrete",
    "LMSDiscrete",
    "PNDM",
    "UniPCMultistep",
    "DEISMultistep",
    "FlowMatchEulerDiscrete",
]:
    torch.manual_seed(1)
    schedule = getattr(diffusers, f"{name}Scheduler")(num_train_timesteps=100)
    schedule.set_timesteps(4)
    y = torch.randn(1, 1, 16, 16)
    with torch.no_grad():
        for t in schedule.timesteps:
            given = (
                schedule.scale_model_input(y, t)
                if hasattr(schedule, "scale_model_input")
                else y
            )
            y = schedule.step(net(given, t).sample, t, y).prev_sample
    print(name, y.abs().mean().item())
coder = diffusers.AutoencoderKL(
    1,
    1,
    ("DownEncoderBlock2D",),
    ("UpDecoderBlock2D",),
    (16,),
    norm_num_groups=4,
    latent_channels=2,
)
found = coder.encode(x).latent_dist
print(
    found.mean.abs().mean().item(),
    coder.decode(found.mode()).sample.shape,
    found.kl().sum().item(),
)
