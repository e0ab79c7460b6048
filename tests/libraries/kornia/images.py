"""filters, colours, geometry, morphology, augmentations, losses, features"""

import kornia
import torch
from kornia import augmentation, color, feature, filters, geometry, losses, morphology

torch.manual_seed(0)
x = torch.rand(2, 3, 32, 32, requires_grad=True)
CALLS = {
    "gaussian_blur2d": lambda: filters.gaussian_blur2d(x, (5, 5), (1.5, 1.5)),
    "sobel": lambda: filters.sobel(x),
    "laplacian": lambda: filters.laplacian(x, 5),
    "median_blur": lambda: filters.median_blur(x, (3, 3)),
    "canny": lambda: filters.canny(x)[0],
    "bilateral_blur": lambda: filters.bilateral_blur(x, (3, 3), 0.1, (1.5, 1.5)),
    "unsharp_mask": lambda: filters.unsharp_mask(x, (3, 3), (1.0, 1.0)),
    "rgb_to_hsv": lambda: color.rgb_to_hsv(x),
    "rgb_to_lab": lambda: color.rgb_to_lab(x),
    "rgb_to_grayscale": lambda: color.rgb_to_grayscale(x),
    "ycbcr": lambda: color.ycbcr_to_rgb(color.rgb_to_ycbcr(x)),
    "rotate": lambda: geometry.rotate(x, torch.tensor([30.0, 60.0])),
    "resize": lambda: geometry.resize(x, (16, 20)),
    "affine": lambda: geometry.affine(x, torch.eye(3)[None, :2].repeat(2, 1, 1)),
    "warp": lambda: geometry.warp_perspective(
        x, torch.eye(3)[None].repeat(2, 1, 1), (32, 32)
    ),
    "pyrdown": lambda: geometry.pyrdown(x),
    "dilation": lambda: morphology.dilation(x, torch.ones(3, 3)),
    "closing": lambda: morphology.closing(x, torch.ones(3, 3)),
    "ssim": lambda: losses.ssim_loss(x, x.flip(0), 5),
    "total_variation": lambda: losses.total_variation(x),
    "focal": lambda: losses.focal_loss(
        x, torch.zeros(2, 32, 32, dtype=torch.long), 0.5, 2.0, "mean"
    ),
    "dice": lambda: losses.dice_loss(x, torch.zeros(2, 32, 32, dtype=torch.long)),
    "harris": lambda: feature.harris_response(x[:, :1]),
    "equalize": lambda: kornia.enhance.equalize(x.detach()),
    "adjust": lambda: kornia.enhance.adjust_brightness(x, 0.2),
}
for name, call in CALLS.items():
    found = call()
    if found.requires_grad:
        found.sum().backward()
    print(name, tuple(found.shape), found.abs().mean().item())
print(
    kornia.geometry.find_homography_dlt(torch.rand(1, 8, 2), torch.rand(1, 8, 2)).shape
)
print(
    kornia.geometry.conversions.axis_angle_to_rotation_matrix(
        torch.tensor([[0.1, 0.2, 0.3]])
    )
)
many = augmentation.AugmentationSequential(
    augmentation.RandomHorizontalFlip(p=1.0),
    augmentation.RandomAffine(10.0, p=1.0),
    augmentation.ColorJitter(0.1, 0.1, 0.1, 0.1, p=1.0),
    augmentation.RandomErasing(p=1.0),
    augmentation.RandomGaussianNoise(p=1.0),
    data_keys=["input", "mask"],
)
found = many(x.detach(), torch.ones(2, 1, 32, 32))
print([tuple(part.shape) for part in found], bool(found[0].isfinite().all()))
