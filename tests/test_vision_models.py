"""Models of vision: weights, results, training."""

import pytest

import pydevtensor as torch
from pydevtensor import nn
from pydevtensor.vision import models

# The numbers of parameters and of entries of the state_dict() of torchvision's models.
MODELS = [
    ("resnet18", 11_689_512, 122),
    ("resnet34", 21_797_672, 218),
    ("resnet50", 25_557_032, 320),
    ("squeezenet1_0", 1_248_424, 52),
    ("squeezenet1_1", 1_235_496, 52),
    pytest.param("resnet101", 44_549_160, 626, marks=pytest.mark.slow),
    pytest.param("resnet152", 60_192_808, 932, marks=pytest.mark.slow),
    pytest.param("alexnet", 61_100_840, 16, marks=pytest.mark.slow),
    pytest.param("vgg11", 132_863_336, 22, marks=pytest.mark.slow),
    pytest.param("vgg13", 133_047_848, 26, marks=pytest.mark.slow),
    pytest.param("vgg16", 138_357_544, 32, marks=pytest.mark.slow),
    pytest.param("vgg19", 143_667_240, 38, marks=pytest.mark.slow),
    pytest.param("vgg11_bn", 132_868_840, 62, marks=pytest.mark.slow),
    pytest.param("vgg13_bn", 133_053_736, 76, marks=pytest.mark.slow),
    pytest.param("vgg16_bn", 138_365_992, 97, marks=pytest.mark.slow),
    pytest.param("vgg19_bn", 143_678_248, 118, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("name", "parameters", "entries"), MODELS)
def test_a_model_has_torchvision_s_weights(name, parameters, entries):
    net = getattr(models, name)(**({"init_weights": False} if "vgg" in name else {}))
    assert sum(p.numel() for p in net.parameters()) == parameters
    assert len(net.state_dict()) == entries


def test_names_and_shapes_of_weights():
    shapes = {
        name: tuple(x.shape) for name, x in models.resnet50().state_dict().items()
    }
    for name, shape in {
        "conv1.weight": (64, 3, 7, 7),
        "bn1.running_mean": (64,),
        "layer1.0.downsample.0.weight": (256, 64, 1, 1),
        "layer1.0.downsample.1.num_batches_tracked": (),
        "layer2.0.conv2.weight": (128, 128, 3, 3),
        "layer4.2.bn3.bias": (2048,),
        "fc.weight": (1000, 2048),
    }.items():
        assert shapes[name] == shape
    squeezed = models.squeezenet1_1().state_dict()
    assert squeezed["features.12.expand3x3.weight"].shape == (256, 64, 3, 3)
    assert squeezed["classifier.1.weight"].shape == (1000, 512, 1, 1)


# What these modules give when PyTorch's layers build them after manual_seed(0): the sum of
# the parameters, and the result for torch.rand(2, 3, size, size) in eval().
ANSWERS = [
    (
        "resnet18",
        32,
        4731.0475,
        [[-0.055641, 0.014405, -0.0284837], [-0.0950582, 0.00524988, -0.0469435]],
    ),
    (
        "resnet50",
        32,
        26452.4813,
        [[1.31466, -1.02297, 0.289825], [1.18531, -0.93639, 0.468157]],
    ),
    (
        "squeezenet1_1",
        48,
        -93.0777,
        [[0.0728568, 0.0, 0.0284622], [0.0673674, 0.0, 0.0215292]],
    ),
    ("squeezenet1_0", 48, -145.6497, [[0.0, 0.0224298, 0.0], [0.0, 0.0192404, 0.0]]),
]


@pytest.mark.parametrize(("name", "size", "total", "expected"), ANSWERS)
def test_a_model_computes_as_in_pytorch(name, size, total, expected):
    torch.manual_seed(0)
    net = getattr(models, name)(num_classes=3)
    x = torch.rand(2, 3, size, size)
    assert abs(
        sum(p.double().sum() for p in net.parameters()).item() - total
    ) < 1e-3 * abs(total)
    net.eval()
    with torch.no_grad():
        y = net(x)
    assert torch.allclose(y, torch.tensor(expected), rtol=1e-3, atol=1e-4)


def test_a_model_learns(gpu):
    net = models.ResNet(models.BasicBlock, [1, 1, 1, 1], num_classes=2).to(gpu)
    x, y = torch.rand(2, 3, 32, 32, device=gpu), torch.tensor([0, 1], device=gpu)
    loss = nn.functional.cross_entropy(net(x), y)
    loss.backward()
    assert all(p.grad is not None for p in net.parameters())
    assert isinstance(net.layer2[0].downsample, nn.Sequential)
    zero = models.ResNet(models.Bottleneck, [1, 1, 1, 1], zero_init_residual=True)
    assert zero.layer3[0].bn3.weight.sum() == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["alexnet", "vgg11_bn"])
def test_large_models_compute(name):
    net = getattr(models, name)(num_classes=3).eval()
    with torch.no_grad():
        assert net(torch.rand(1, 3, 64, 64)).shape == (1, 3)


def test_weights_of_a_local_file(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    for options in ({"weights": "IMAGENET1K_V1"}, {"pretrained": True}):
        with pytest.raises(
            RuntimeError, match=r"squeezenet1_1-.*nothing from the network"
        ):
            models.squeezenet1_1(**options)
    folder = tmp_path / "hub" / "checkpoints"
    folder.mkdir(parents=True)
    net = models.squeezenet1_1()
    torch.save(net.state_dict(), folder / "squeezenet1_1-b8a52dc0.pth")
    again = models.squeezenet1_1(weights=models.SqueezeNet1_1_Weights.DEFAULT)
    assert torch.equal(again.classifier[1].weight, net.classifier[1].weight)
    (folder / "squeezenet1_1-other.pth").touch()
    with pytest.raises(RuntimeError, match="with one of them"):
        models.squeezenet1_1(weights="DEFAULT")
    assert models.ResNet50_Weights.DEFAULT is models.ResNet50_Weights.IMAGENET1K_V2
    with pytest.raises(ValueError, match="version"):
        models.SqueezeNet("2_0")


def test_features_by_a_list():
    from pydevtensor.vision.models.vgg import make_layers

    kinds = [type(layer).__name__ for layer in make_layers([4, "M", 8], True)]
    convolution = ["Conv2d", "BatchNorm2d", "ReLU"]
    assert kinds == [*convolution, "MaxPool2d", *convolution]
    assert make_layers([4, "M", 8])(torch.ones(1, 3, 4, 4)).shape == (1, 8, 2, 2)
