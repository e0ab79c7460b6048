"""Each name that the PyTorch cells of "Dive into Deep Learning" use is there.

A table by chapter, of names as the cells write them.
"""

import importlib

import pytest
from cases import Cases

# Below `import torch` and `import torchvision`, without the first name for torch's.
BOOK = {
    "preliminaries": """
        arange zeros ones randn rand tensor exp cat zeros_like from_numpy float32 abs dot mv mm
        norm sum mean cumsum matmul Size is_tensor distributions.multinomial.Multinomial
        distributions.Multinomial manual_seed Tensor
        Tensor.numel Tensor.shape Tensor.reshape Tensor.item Tensor.numpy Tensor.T Tensor.clone
        Tensor.sum Tensor.mean Tensor.cumsum Tensor.requires_grad_ Tensor.backward Tensor.grad
        Tensor.zero_ Tensor.detach Tensor.tolist Tensor.type Tensor.dtype Tensor.size
        Tensor.view Tensor.float Tensor.long Tensor.int Tensor.t Tensor.dim Tensor.ndim
        nn nn.functional optim utils.data autograd cuda""",
    "linear networks": """
        normal no_grad matmul randperm device optim.SGD nn.LazyLinear nn.Linear nn.MSELoss
        nn.Module nn.Parameter nn.Sequential nn.Flatten nn.CrossEntropyLoss nn.HuberLoss
        nn.L1Loss utils.data.TensorDataset utils.data.DataLoader utils.data.Dataset
        nn.functional.cross_entropy nn.functional.mse_loss nn.functional.softmax argmax log
        Tensor.normal_ Tensor.fill_ Tensor.data Tensor.argmax Tensor.max
        Tensor.exp Tensor.log Tensor.squeeze Tensor.unsqueeze Tensor.square Tensor.sqrt
        nn.Module.parameters nn.Module.train nn.Module.eval
        torchvision.datasets.FashionMNIST torchvision.transforms.Compose
        torchvision.transforms.Resize torchvision.transforms.ToTensor""",
    "multilayer perceptrons": """
        relu sigmoid tanh max maximum ones_like nn.ReLU nn.Sigmoid nn.Tanh nn.Dropout sqrt
        nn.PReLU nn.functional.relu nn.functional.dropout nn.init.normal_ clamp log10 float64
        Tensor.mul Tensor.matmul Tensor.bernoulli_ Tensor.uniform_ save load""",
    "builders' guide": """
        nn.Module.add_module nn.Module.named_parameters nn.Module.state_dict
        nn.Module.load_state_dict nn.Module.apply nn.Module.children nn.Module.modules
        nn.Module.named_modules nn.Module.to nn.Module.cuda nn.Module.cpu
        nn.Module.register_buffer nn.Module.register_parameter nn.ModuleList nn.ModuleDict
        nn.ParameterList nn.init.zeros_ nn.init.ones_ nn.init.constant_ nn.init.uniform_
        nn.init.xavier_uniform_ nn.init.xavier_normal_ nn.init.kaiming_uniform_
        nn.init.kaiming_normal_ nn.parameter.UninitializedParameter nn.Identity
        cuda.is_available cuda.device_count cuda.current_device cuda.get_device_name
        cuda.synchronize cuda.empty_cache cuda.Stream Tensor.to Tensor.cuda Tensor.cpu
        Tensor.device Tensor.copy_ Tensor.abs stack""",
    "convolutional networks": """
        nn.Conv2d nn.LazyConv2d nn.Conv1d nn.LazyConv1d nn.MaxPool2d nn.AvgPool2d
        nn.AdaptiveAvgPool2d nn.AdaptiveMaxPool2d nn.BatchNorm2d nn.LazyBatchNorm2d
        nn.BatchNorm1d nn.LazyBatchNorm1d nn.LocalResponseNorm nn.functional.conv2d
        nn.functional.max_pool2d nn.functional.avg_pool2d nn.functional.pad is_grad_enabled
        nn.functional.batch_norm nn.functional.adaptive_avg_pool2d flatten""",
    "recurrent networks": """
        nn.RNN nn.GRU nn.LSTM nn.RNNCell nn.GRUCell nn.LSTMCell nn.Embedding
        nn.functional.one_hot nn.utils.clip_grad_norm_ nn.utils.rnn.pad_sequence
        nn.utils.rnn.pack_padded_sequence nn.utils.rnn.pad_packed_sequence
        Tensor.detach_ Tensor.permute Tensor.swapaxes Tensor.repeat Tensor.transpose
        Tensor.expand Tensor.contiguous swapaxes transpose permute concat split
        repeat_interleave int32 int64 long""",
    "attention and transformers": """
        bmm eye softmax nn.LayerNorm nn.GELU nn.MultiheadAttention nn.Transformer
        nn.TransformerEncoderLayer nn.TransformerEncoder nn.functional.gelu sin cos pow outer
        nn.functional.layer_norm nn.functional.scaled_dot_product_attention
        Tensor.repeat_interleave Tensor.masked_fill Tensor.bool triu tril linspace where""",
    "optimization": """
        optim.Adam optim.AdamW optim.RMSprop optim.Adagrad optim.Adadelta optim.Adamax
        optim.Optimizer optim.lr_scheduler.StepLR optim.lr_scheduler.MultiStepLR
        optim.lr_scheduler.CosineAnnealingLR optim.lr_scheduler.LambdaLR
        optim.lr_scheduler.ExponentialLR optim.lr_scheduler.OneCycleLR
        optim.lr_scheduler.ReduceLROnPlateau meshgrid sign Tensor.sub_ Tensor.add_
        Tensor.mul_ Tensor.div_""",
    "computational performance": """
        jit.script jit.save jit.load nn.DataParallel nn.parallel.scatter
        nn.parallel.parallel_apply nn.parallel.DataParallel nn.functional.cross_entropy
        cuda.Event cuda.device cuda.stream utils.data.get_worker_info""",
    "computer vision": """
        nn.ConvTranspose2d nn.LeakyReLU nn.SmoothL1Loss nn.Upsample nn.functional.interpolate
        nn.functional.smooth_l1_loss nonzero unique topk sort argsort square full
        gather scatter min Tensor.clamp Tensor.nonzero Tensor.unique Tensor.sort Tensor.flip
        Tensor.requires_grad Tensor.topk Tensor.any Tensor.all
        torchvision.datasets.CIFAR10 torchvision.datasets.ImageFolder torchvision.io.read_image
        torchvision.io.image.ImageReadMode.RGB torchvision.ops.roi_pool torchvision.ops.nms
        torchvision.models.resnet18 torchvision.models.vgg19 torchvision.models.resnet50
        torchvision.transforms.RandomHorizontalFlip torchvision.transforms.RandomVerticalFlip
        torchvision.transforms.RandomResizedCrop torchvision.transforms.ColorJitter
        torchvision.transforms.Normalize torchvision.transforms.CenterCrop
        torchvision.transforms.RandomCrop.get_params torchvision.transforms.ToPILImage
        torchvision.transforms.functional.crop torchvision.utils.make_grid""",
    "language models and applications": """
        nn.functional.binary_cross_entropy_with_logits nn.BCEWithLogitsLoss nn.BCELoss
        nn.functional.binary_cross_entropy nn.NLLLoss nn.AdaptiveAvgPool1d nn.MaxPool1d
        nn.functional.log_softmax nn.functional.embedding multinomial Tensor.scatter_
        Tensor.ne Tensor.eq nn.CosineSimilarity nn.functional.cosine_similarity""",
    "generative adversarial networks": """
        nn.ConvTranspose2d nn.functional.leaky_relu nn.functional.sigmoid nn.functional.tanh
        optim.Adam Tensor.reshape utils.data.ConcatDataset utils.data.random_split""",
    "recommender systems, reinforcement learning": """
        nn.functional.linear nn.Softmax nn.LogSoftmax nn.EmbeddingBag nn.ParameterDict
        distributions.Categorical distributions.Normal distributions.Bernoulli Generator""",
    "mathematics": """
        acos erf det inverse linalg.eig linalg.inv linalg.norm linalg.det linalg.svd
        linalg.eigh linalg.solve linalg.matrix_rank matrix_power einsum log2 nansum var std
        lgamma randint autograd.grad autograd.Function isnan isinf floor ceil round tensordot
        kron cumprod prod cross set_printoptions set_default_dtype
        get_default_dtype finfo""",
    "programs around the book": """
        __version__ version.cuda compile inference_mode enable_grad set_grad_enabled
        use_deterministic_algorithms backends.cudnn.benchmark backends.cudnn.deterministic
        backends.mps.is_available accelerator.current_accelerator multiprocessing cuda.manual_seed cuda.manual_seed_all cuda.memory_allocated
        cuda.max_memory_allocated cuda.amp.autocast cuda.amp.GradScaler autocast
        amp.autocast amp.GradScaler set_num_threads get_num_threads testing.assert_close
        utils.data.Subset utils.data.SubsetRandomSampler utils.data.WeightedRandomSampler
        utils.data.Sampler utils.data.BatchSampler utils.data.default_collate
        utils.data.dataloader.DataLoader utils.data.dataset.Dataset nn.modules.module.Module
        nn.utils.clip_grad_value_ nn.utils.parameters_to_vector nn.utils.vector_to_parameters
        nn.utils.weight_norm nn.utils.parametrize nn.GroupNorm nn.InstanceNorm2d nn.Dropout2d
        nn.SiLU nn.ELU nn.Softplus nn.Hardtanh nn.KLDivLoss nn.TripletMarginLoss nn.Unfold
        nn.functional.unfold nn.functional.normalize nn.functional.grid_sample
        nn.functional.affine_grid nn.functional.kl_div nn.functional.nll_loss
        nn.functional.softplus nn.PixelShuffle nn.Conv3d nn.MaxPool3d nn.ReflectionPad2d
        nn.ZeroPad2d nn.Buffer utils.checkpoint.checkpoint
        types.Device FloatTensor
        Tensor.register_hook Tensor.retain_grad Tensor.element_size Tensor.is_cuda
        Tensor.is_contiguous random.get_rng_state
        torchvision.models.resnet34 torchvision.models.vgg11 torchvision.models.vgg16
        torchvision.models.alexnet torchvision.models.squeezenet1_1
        torchvision.models.ResNet18_Weights torchvision.datasets.MNIST
        torchvision.datasets.CIFAR100 torchvision.datasets.FakeData
        torchvision.utils.save_image""",
}


def found(name):
    """The object of a dotted name, with modules imported as `import` does it."""
    parts = name.split(".")
    path = "pydevtensor"
    if parts[0] == "torchvision":
        path, parts = "pydevtensor.vision", parts[1:]
    value = importlib.import_module(path)
    for part in parts:
        path += "." + part
        try:
            value = getattr(value, part)
        except AttributeError:
            value = importlib.import_module(path)
    return value


@pytest.mark.parametrize("chapter", BOOK)
def test_names_are_there(chapter):
    with Cases() as case:
        for name in BOOK[chapter].split():
            with case(name):
                found(name)
