"""What modules are like: text, attributes, states, results, and the errors of wrong use.

One case a line (where \\n begins another line): statements, the last of them the expression
whose value is recorded, or the exception that it raises. The test evaluates them on each device, save those under a
heading that ends with "on the CPU".
"""

import warnings

from describe import builtin_name, describe_or_text, run

SETUP = (
    "import copy, pickle; from collections import OrderedDict; "
    "nn, F = torch.nn, torch.nn.functional; torch.manual_seed(3); "
    "x = torch.arange(6.0).reshape(2, 3) / 4 - 0.5; i = torch.tensor([[1, 2], [2, 0]]); "
    "w = torch.arange(12.0).reshape(4, 3) / 8 - 0.6; t = torch.tensor([0, 2])"
)

CASES = {
    "Embedding": r"""
        repr(nn.Embedding(5, 3))
        repr(nn.Embedding(5, 3, padding_idx=-2, max_norm=1., norm_type=1, scale_grad_by_freq=True))
        repr(nn.Embedding(5, 3, 0, 2, sparse=True))
        nn.Embedding(5, 3, padding_idx=-2).padding_idx
        nn.Embedding(5, 3, padding_idx=-2).weight[3]
        e = nn.Embedding(5, 3); [e.num_embeddings, e.embedding_dim, e.padding_idx, e.max_norm, e.norm_type, e.scale_grad_by_freq, e.sparse]
        list(nn.Embedding(5, 3).state_dict())
        nn.Embedding(0, 3).weight
        nn.Embedding(5, 3, padding_idx=5)
        nn.Embedding(5, 3, padding_idx=-6)
        nn.Embedding(4, 3, _weight=w[:2])
        nn.Embedding(4, 3, _weight=w, _freeze=True).weight
        nn.Embedding.from_pretrained(w)(i)
        nn.Embedding.from_pretrained(w).weight.requires_grad
        nn.Embedding.from_pretrained(w, freeze=False).weight.requires_grad
        nn.Embedding.from_pretrained(w).weight.data_ptr() == w.data_ptr()
        repr(nn.Embedding.from_pretrained(w, padding_idx=1))
        nn.Embedding.from_pretrained(w, padding_idx=1).weight
        nn.Embedding.from_pretrained(w[0])
        nn.Embedding.from_pretrained(w)([1])
        nn.Embedding.from_pretrained(w)(torch.tensor([1.]))
        nn.Embedding.from_pretrained(w)(torch.tensor([True]))
        F.embedding(i, w)
        F.embedding(i.int(), w)
        F.embedding(i.short(), w)
        F.embedding(i.T, w.T)
        F.embedding(torch.tensor(1), w)
        F.embedding(torch.empty(0, 2, dtype=torch.int64), w)
        F.embedding(i, w[0])
        F.embedding(i, w.long())
        F.embedding(i, w, 4)
        F.embedding(i, w, -5)
        torch.embedding(w, i, 1)
        F.embedding(i, w.requires_grad_()).grad_fn.name()
        (F.embedding(i, w.requires_grad_()) * torch.arange(12.).reshape(2, 2, 3)).sum().backward(); w.grad
        (F.embedding(i, w.requires_grad_(), 2) * torch.arange(12.).reshape(2, 2, 3)).sum().backward(); w.grad
        (F.embedding(i, w.requires_grad_(), -1, scale_grad_by_freq=True) * torch.arange(12.).reshape(2, 2, 3)).sum().backward(); w.grad
        g, = torch.autograd.grad((F.embedding(i, w.requires_grad_(), 1) ** 3).sum(), w, create_graph=True); g.square().sum().backward(); w.grad
        torch.autograd.grad((F.embedding(i, w.requires_grad_()) ** 2).sum(), w, create_graph=True)[0].grad_fn.name()
        F.embedding(i, w, max_norm=0.5)
        F.embedding(i, w, max_norm=0.5, norm_type=1.0); w
        F.embedding(i, w, max_norm=0.3, norm_type=float('inf')); w
        e = nn.Embedding(4, 3, _weight=w, max_norm=0.4); y = e(i); y.sum().backward(); [w, y, e.weight.grad]
    """,
    "Embedding, on the CPU": r"""
        nn.Embedding(5, 3).weight
        nn.Embedding(7, 3, padding_idx=2).weight
        nn.Embedding(2, 3).weight
        nn.Embedding(5, 3, dtype=torch.float64).weight
        e = nn.Embedding(4, 2); e.reset_parameters(); e.weight
        F.embedding(torch.tensor([4]), w)
        F.embedding(torch.tensor([-1]), w)
    """,
    "one_hot": r"""
        F.one_hot(t)
        F.one_hot(t, 5)
        F.one_hot(i)
        F.one_hot(torch.tensor(2))
        F.one_hot(torch.empty(0, dtype=torch.int64), 2)
        F.one_hot(torch.empty(0, dtype=torch.int64))
        F.one_hot(t, 0)
        F.one_hot(t, -2)
        F.one_hot(t.int())
        F.one_hot(x)
    """,
    "one_hot, on the CPU": r"""
        F.one_hot(t, 2)
        F.one_hot(-t)
        F.one_hot(-t, 3)
    """,
    "text": r"""
        str(nn.Sequential(OrderedDict(a=nn.Linear(2, 3), b=nn.Sequential(nn.ReLU(), nn.Sequential()))))
        str(nn.Sequential())
        str(nn.ModuleList())
        str(nn.ModuleDict())
        str(nn.ParameterList())
        str(nn.ParameterDict())
        str(nn.ModuleList([nn.ReLU()] * 3 + [nn.Sequential(nn.Linear(1, 1), nn.Tanh())] * 2))
        str(nn.ModuleDict({'x': nn.Sequential(nn.Tanh()), 'y': nn.Identity(1, b=2)}))
        class Net(nn.Module): pass\nstr(Net())
        class Net(nn.Module):\n    def extra_repr(self): return 'one' + chr(10) + 'two'\nstr(Net())
        class Net(nn.Module):\n    def extra_repr(self): return 'one'\nn = Net(); n.a = nn.Tanh(); n.b = None; n.add_module('c', None); str(n)
        class Net(nn.Module):\n    def _get_name(self): return 'Other'\nstr(Net())
        str(nn.Linear(3, 4, bias=False))
        str(nn.Bilinear(2, 3, 4, bias=False))
        str(nn.LazyLinear(4, bias=False))
        str(nn.LazyLinear(4).weight)
        str(nn.Flatten(0, 2))
        str(nn.Unflatten(1, (2, 3)))
        str(nn.Unflatten(1, [2, 3]))
        str(nn.Unflatten('name', (('a', 2), ('b', 3))))
        str(nn.Dropout(0.25, inplace=True))
        str(nn.LayerNorm([2, 3], eps=1e-3, bias=False))
        str(nn.BatchNorm1d(3, momentum=None, track_running_stats=False))
        str(nn.BatchNorm2d(3, affine=False))
        str(nn.ReLU(True)), str(nn.LeakyReLU(0.2, True)), str(nn.ELU(0.5, True)), str(nn.GELU('tanh')), str(nn.SiLU(True))
        str(nn.Sigmoid()), str(nn.Tanh()), str(nn.Softplus(2, 3)), str(nn.Softmax(1)), str(nn.LogSoftmax(-1)), str(nn.Softmax())
        [str(getattr(nn, name)()) for name in ('MSELoss', 'L1Loss', 'SmoothL1Loss', 'HuberLoss', 'CrossEntropyLoss', 'NLLLoss', 'BCELoss', 'BCEWithLogitsLoss', 'KLDivLoss')]
        str(nn.CrossEntropyLoss(weight=x[0], label_smoothing=0.1))
        str(nn.Parameter(torch.tensor([1., 2.], device='cpu')))
        str(nn.Parameter(torch.tensor([1, 2], device='cpu'), requires_grad=False))
        str(nn.Sequential(nn.Linear(2, 2)).load_state_dict(nn.Sequential(nn.Linear(2, 2)).state_dict()))
        str(nn.Linear(2, 2).load_state_dict({'a': x}, strict=False))
    """,
    "text, on the CPU": r"""
        str(nn.ParameterList([w, x, 3, 'text']))
        str(nn.ParameterDict({'b': w, 'a': x, 'c': 1}))
        str(nn.ParameterDict(OrderedDict(b=w, a=nn.Parameter(x))))
    """,
    "attributes": r"""
        sorted(k for k in vars(nn.Linear(2, 3)) if not k.startswith('_'))
        sorted(k for k in vars(nn.LazyLinear(3)) if not k.startswith('_'))
        sorted(k for k in vars(nn.Bilinear(2, 3, 4)) if not k.startswith('_'))
        sorted(k for k in vars(nn.Flatten()) if not k.startswith('_'))
        sorted(k for k in vars(nn.Unflatten(0, (1,))) if not k.startswith('_'))
        sorted(k for k in vars(nn.Dropout()) if not k.startswith('_'))
        sorted(k for k in vars(nn.Embedding(2, 3)) if not k.startswith('_'))
        sorted(k for k in vars(nn.LayerNorm(3)) if not k.startswith('_'))
        sorted(k for k in vars(nn.BatchNorm1d(3)) if not k.startswith('_'))
        sorted(k for k in vars(nn.BatchNorm2d(3)) if not k.startswith('_'))
        [sorted(k for k in vars(m) if not k.startswith('_')) for m in (nn.ReLU(), nn.LeakyReLU(), nn.ELU(), nn.GELU(), nn.SiLU(), nn.Sigmoid(), nn.Tanh(), nn.Softplus(), nn.Softmax(1), nn.LogSoftmax(1))]
        [sorted(k for k in vars(m) if not k.startswith('_')) for m in (nn.MSELoss(), nn.L1Loss(), nn.SmoothL1Loss(), nn.HuberLoss(), nn.CrossEntropyLoss(), nn.NLLLoss(), nn.BCELoss(), nn.BCEWithLogitsLoss(), nn.KLDivLoss())]
        m = nn.BatchNorm1d(3); [m.eps, m.momentum, m.affine, m.track_running_stats, m.num_features]
        m = nn.LayerNorm(3); [m.normalized_shape, m.eps, m.elementwise_affine]
        m = nn.Softplus(); [m.beta, m.threshold]
        m = nn.CrossEntropyLoss(); [m.weight, m.ignore_index, m.reduction, m.label_smoothing]
        m = nn.SmoothL1Loss(); [m.beta, m.reduction]
        m = nn.KLDivLoss(); [m.log_target, m.reduction]
        [m.negative_slope for m in (nn.LeakyReLU(), nn.LeakyReLU(0.3))]
        [nn.MSELoss(size_average=False).reduction, nn.MSELoss(reduce=False).reduction, nn.MSELoss(reduce=True, size_average=True).reduction]
        nn.Dropout(1.5)
        nn.Dropout(-0.1)
        nn.Linear(2, 3).in_features, nn.Linear(2, 3).out_features
        nn.Linear(2, 3).no_such
        nn.Linear(2, -3)
        nn.Linear('a', 3)
        nn.Linear(2)
        nn.Bilinear(0, 2, 3)
        nn.Unflatten(1, 3)
        nn.Unflatten(1, (2, 'a'))
        nn.Unflatten('a', (2, 3))
        nn.GELU('other')(x)
        nn.Softmax(5)(x)
        nn.SmoothL1Loss(beta=-1)(x, x)
        nn.HuberLoss(delta=0)(x, x)
        nn.MSELoss(reduction='other')(x, x)
        nn.CrossEntropyLoss(label_smoothing=2)(x, t)
        nn.Module(3)
        nn.Module(a=3)
    """,
    "states": r"""
        list(nn.Linear(2, 3).state_dict())
        list(nn.Linear(2, 3, bias=False).state_dict())
        list(nn.Bilinear(2, 3, 4).state_dict())
        list(nn.BatchNorm1d(3).state_dict())
        list(nn.BatchNorm2d(3, affine=False).state_dict())
        list(nn.BatchNorm1d(3, track_running_stats=False).state_dict())
        list(nn.LayerNorm(3).state_dict())
        list(nn.LayerNorm(3, elementwise_affine=False).state_dict())
        list(nn.LayerNorm(3, bias=False).state_dict())
        list(nn.LazyLinear(3).state_dict())
        list(nn.CrossEntropyLoss(weight=x[0]).state_dict())
        list(nn.BCEWithLogitsLoss(pos_weight=x[0]).state_dict())
        list(nn.ParameterList([w, 3, x]).state_dict())
        list(nn.ParameterDict({'b': w, 'a': x}).state_dict())
        list(nn.ModuleDict({'b': nn.Linear(1, 1), 'a': nn.BatchNorm1d(1)}).state_dict())
        list(nn.Sequential(nn.Linear(1, 1), nn.ReLU(), nn.ModuleList([nn.Linear(1, 1)])).state_dict(prefix='p.'))
        type(nn.Linear(1, 1).state_dict()).__name__
        dict(nn.Sequential(nn.Linear(1, 1), nn.BatchNorm1d(1)).state_dict()._metadata).__repr__()
        nn.Linear(2, 3).state_dict()['weight'].requires_grad
        nn.Linear(2, 3).state_dict(keep_vars=True)['weight'].requires_grad
        m = nn.Linear(2, 3); m.state_dict()['weight'].zero_(); m.weight
        d = {}; nn.Linear(2, 3).state_dict(destination=d); list(d)
        m = nn.BatchNorm1d(3); [m.weight, m.bias, m.running_mean, m.running_var, m.num_batches_tracked]
        m = nn.LayerNorm([2, 3]); [m.weight, m.bias]
        [k for k, v in nn.Linear(2, 3).named_parameters()]
        class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.b = nn.Linear(1, 1)\n        self.register_buffer('kept', torch.ones(1))\n        self.register_buffer('lost', torch.ones(1), persistent=False)\n        self.register_buffer('none', None)\n        self.p = nn.Parameter(torch.ones(1))\n[list(Net().state_dict()), [k for k, v in Net().named_buffers()], [k for k, v in Net().named_parameters()]]
        nn.Linear(2, 3).load_state_dict({})
        nn.Linear(2, 3).load_state_dict({'weight': x.T, 'bias': x[0], 'more': x})
        nn.Linear(2, 3).load_state_dict({'weight': x, 'bias': x[0]})
        nn.Linear(2, 3).load_state_dict({'weight': x, 'bias': x[0]}, strict=False)
        nn.Linear(2, 3).load_state_dict({'weight': [1], 'bias': x[0]})
        nn.Linear(2, 3).load_state_dict(3)
        r = nn.Linear(2, 3).load_state_dict({'weight': x.T.clone(), 'a': x}, strict=False); [r.missing_keys, r.unexpected_keys]
        m = nn.Linear(2, 3); m.load_state_dict({'weight': x.T.clone().double(), 'bias': x[0].double()}); [m.weight, m.bias]
        m = nn.Linear(2, 3); m.load_state_dict({'weight': x.T.clone().double(), 'bias': x[0].double()}, assign=True); [m.weight, m.weight.requires_grad, type(m.weight).__name__]
        m = nn.LazyLinear(3); m.load_state_dict({'weight': x.T.clone(), 'bias': x[0]}); m.weight
        m = nn.Linear(2, 3); r = m.load_state_dict({'weight': x.T.clone(), 'bias': torch.zeros(4)}, strict=False)
        m = nn.BatchNorm1d(3); s = m.state_dict(); del s['num_batches_tracked']; m.load_state_dict(s)
        m = nn.ParameterDict({'a': w}); m.load_state_dict({'a': w * 2}); m['a']
    """,
    "containers": r"""
        s = nn.Sequential(nn.Linear(1, 2), nn.ReLU(), nn.Tanh()); [str(s[0]), str(s[-1]), str(s[1:]), str(s[::2]), len(s)]
        nn.Sequential(nn.ReLU())[1]
        nn.Sequential(nn.ReLU())[-2]
        nn.Sequential(nn.ReLU())['a']
        nn.Sequential(3)
        nn.Sequential(nn.ReLU)
        nn.Sequential([nn.ReLU()])
        nn.Sequential(OrderedDict([('a.b', nn.ReLU())]))
        nn.Sequential(OrderedDict([('', nn.ReLU())]))
        nn.Sequential(OrderedDict([('forward', nn.ReLU())]))
        s = nn.Sequential(nn.Linear(1, 2), nn.ReLU()); s[1] = nn.Tanh(); s[-2] = nn.Sigmoid(); str(s)
        s = nn.Sequential(nn.ReLU()); s[1] = nn.Tanh()
        s = nn.Sequential(nn.ReLU()); s[0] = 3
        s = nn.Sequential(nn.ReLU(), nn.Tanh(), nn.Sigmoid()); del s[1]; str(s)
        s = nn.Sequential(nn.ReLU(), nn.Tanh(), nn.Sigmoid()); del s[:2]; str(s)
        s = nn.Sequential(nn.ReLU()); del s[3]
        s = nn.Sequential(nn.ReLU()); r = s.append(nn.Tanh()); [str(s), r is s]
        s = nn.Sequential(nn.ReLU()); r = s.insert(0, nn.Tanh()); [str(s), r is s]
        s = nn.Sequential(nn.ReLU(), nn.Tanh()); s.insert(-1, nn.Sigmoid()); str(s)
        s = nn.Sequential(nn.ReLU(), nn.Tanh()); s.insert(5, nn.Sigmoid())
        s = nn.Sequential(nn.ReLU()); s.insert(0, 3)
        s = nn.Sequential(nn.ReLU()); s.append(3)
        s = nn.Sequential(nn.ReLU()); r = s.extend(nn.Sequential(nn.Tanh(), nn.ELU())); [str(s), r is s]
        s = nn.Sequential(nn.ReLU(), nn.Tanh()); p = s.pop(0); [str(s), str(p)]
        s = nn.Sequential(nn.ReLU(), nn.Tanh()); p = s.pop(-1); [str(s), str(p)]
        str(nn.Sequential(nn.ReLU()) + nn.Sequential(nn.Tanh()))
        nn.Sequential(nn.ReLU()) + 3
        s = nn.Sequential(nn.ReLU()); s += nn.Sequential(nn.Tanh()); str(s)
        str(nn.Sequential(nn.ReLU(), nn.Tanh()) * 2)
        str(2 * nn.Sequential(nn.ReLU()))
        s = nn.Sequential(nn.ReLU()); s *= 2; str(s)
        nn.Sequential(nn.ReLU()) * 0
        nn.Sequential(nn.ReLU()) * 'a'
        [str(m) for m in nn.Sequential(nn.ReLU(), nn.Tanh())]
        nn.Sequential()(x)
        nn.Sequential(nn.Flatten(0), nn.Identity())(x)
        s = nn.Sequential(OrderedDict(a=nn.Linear(1, 2), b=nn.ReLU())); [str(s.a), str(s[1]), str(s[:1])]
        m = nn.ModuleList([nn.ReLU(), nn.Tanh()]); [str(m[0]), str(m[-1]), str(m[:1]), len(m), type(m[1:]).__name__]
        nn.ModuleList([nn.ReLU()])[1]
        nn.ModuleList([nn.ReLU()])(x)
        m = nn.ModuleList([nn.ReLU()]); m.append(nn.Tanh()).extend([nn.ELU()]); str(m)
        m = nn.ModuleList([nn.ReLU()]); m.extend(nn.Tanh())
        m = nn.ModuleList([nn.ReLU()]); m.insert(0, nn.Tanh()); str(m)
        m = nn.ModuleList([nn.ReLU()]); m += [nn.Tanh()]; str(m)
        str(nn.ModuleList([nn.ReLU()]) + nn.ModuleList([nn.Tanh()]))
        m = nn.ModuleList([nn.ReLU(), nn.Tanh(), nn.ELU()]); del m[0]; del m[1:]; str(m)
        m = nn.ModuleList([nn.ReLU(), nn.Tanh()]); p = m.pop(0); [str(m), str(p)]
        m = nn.ModuleList([nn.ReLU()]); m[0] = nn.Tanh(); str(m)
        m = nn.ModuleList([nn.ReLU()]); m.append(3)
        nn.ModuleList(3)
        m = nn.ModuleDict({'b': nn.ReLU()}); m['a'] = nn.Tanh(); [str(m), list(m), list(m.keys()), len(m), 'a' in m, 'z' in m]
        m = nn.ModuleDict([('x', nn.ReLU())]); m.update({'y': nn.Tanh()}); m.update([['z', nn.ELU()]]); str(m)
        m = nn.ModuleDict({'b': nn.ReLU(), 'a': nn.Tanh()}); p = m.pop('b'); [str(p), str(m)]
        m = nn.ModuleDict({'b': nn.ReLU()}); m.clear(); len(m)
        m = nn.ModuleDict({'b': nn.ReLU()}); m['c']
        m = nn.ModuleDict({'b': nn.ReLU()}); del m['c']
        nn.ModuleDict({'b': 3})
        nn.ModuleDict({'b.c': nn.ReLU()})
        nn.ModuleDict({1: nn.ReLU()})
        nn.ModuleDict({'pop': nn.ReLU()})
        nn.ModuleDict(3)
        nn.ModuleDict([3])
        nn.ModuleDict([('a', nn.ReLU(), 3)])
        [(k, str(v)) for k, v in nn.ModuleDict({'b': nn.ReLU()}).items()]
        p = nn.ParameterList([w]); p.append(x); p.extend([x]); p += [w]; [len(p), type(p[1]).__name__, len(p[1:]), [k for k, v in p.named_parameters()]]
        p = nn.ParameterList([w]); p[0] = x; p[-1]
        nn.ParameterList([w])[1]
        p = nn.ParameterList([w, 5]); [p[1], len(p), len(list(p.parameters()))]
        nn.ParameterList([w])(x)
        nn.ParameterList(3)
        p = nn.ParameterDict({'b': w, 'a': x}); [list(p), list(p.keys()), len(p), 'a' in p, p['a'] is p.a, type(p.a).__name__]
        p = nn.ParameterDict({'b': w, 'a': x}); q = p.pop('a'); [list(p), q]
        p = nn.ParameterDict({'b': w, 'a': x}); [p.popitem()[0], list(p)]
        p = nn.ParameterDict(OrderedDict(b=w, a=x)); [list(p), list(reversed(p)), p.popitem()[0]]
        p = nn.ParameterDict({'b': w}); [p.get('c'), p.get('c', 3), p.setdefault('b', 4) is p.b, p.setdefault('d', x) is p['d'], list(p)]
        p = nn.ParameterDict({'b': w}); p.update([('c', x), ('a', 3)]); [list(p), p['a']]
        p = nn.ParameterDict({'b': w}); [list(p | {'c': x}), list({'c': x} | p)]
        p = nn.ParameterDict({'b': w}); p |= {'c': x}; list(p)
        p = nn.ParameterDict({'b': w}); q = p.copy(); [list(q), q['b'] is p['b'], type(q).__name__]
        p = nn.ParameterDict({'b': w}); p.clear(); [len(p), list(p.parameters())]
        p = nn.ParameterDict({'b': w}); p['c']
        p = nn.ParameterDict({'b': w}); del p['c']
        nn.ParameterDict({1: w})
        nn.ParameterDict(3)
        nn.ParameterDict([('a', w, 3)])
        nn.ParameterDict({'b': w})(x)
        list(nn.ParameterDict().fromkeys(['a', 'b'], w))
        [k for k, v in nn.ParameterDict({'b': w, 'a': x}).items()]
        nn.Unflatten(1, (3, 1))(x)
        nn.Unflatten(0, (-1, 2))(x)
        nn.Unflatten(1, (2, 2))(x)
        nn.Unflatten(4, (2, 2))(x)
        nn.Flatten()(x[None])
        nn.Flatten(0, 5)(x)
        nn.Flatten()(x[0])
    """,
    "assignment": r"""
        m = nn.Linear(2, 3); m.weight = w
        m = nn.Linear(2, 3); m.weight = None; list(m.state_dict())
        m = nn.Linear(2, 3); m.weight = nn.Parameter(w); m.weight is m._parameters['weight']
        m = nn.Linear(2, 3); m.bias = nn.ReLU(); [k for k, v in m.named_parameters()]
        m = nn.Sequential(nn.ReLU()); m[0] = w
        m = nn.Module(); m.a = w; m.a is w
        m = nn.Module(); m.a = nn.Parameter(w); del m.a; m.a
        m = nn.Module(); del m.a
        m = nn.Module(); m.a = nn.ReLU(); m.a = 3
        m = nn.Module(); m.a = nn.ReLU(); m.a = None; str(m)
        m = nn.Module(); m.a = 3; m.a = nn.Parameter(w); [k for k, v in m.named_parameters()]
        m = nn.Module(); m.a = nn.Parameter(w); m.a = nn.ReLU(); [list(m._parameters), list(m._modules)]
        m = nn.Module(); m.register_parameter('a.b', nn.Parameter(w))
        m = nn.Module(); m.register_parameter('', nn.Parameter(w))
        m = nn.Module(); m.register_parameter(3, nn.Parameter(w))
        m = nn.Module(); m.register_parameter('a', w)
        m = nn.Module(); m.register_parameter('forward', nn.Parameter(w))
        m = nn.Module(); m.register_parameter('a', None); m.a
        m = nn.Module(); m.register_parameter('a', None); m.a = w
        m = nn.Module(); m.register_parameter('a', None); m.a = nn.Parameter(w); [k for k, v in m.named_parameters()]
        m = nn.Module(); p = nn.Parameter(w); p.add_(0) if False else None; m.register_parameter('a', nn.Parameter(w) * 2)
        m = nn.Module(); m.register_buffer('a.b', w)
        m = nn.Module(); m.register_buffer('', w)
        m = nn.Module(); m.register_buffer('a', 3)
        m = nn.Module(); m.register_buffer(3, w)
        m = nn.Module(); m.register_buffer('forward', w)
        m = nn.Module(); m.register_buffer('a', w); m.a = 3
        m = nn.Module(); m.register_buffer('a', w); m.a = None; m.a
        m = nn.Module(); m.register_buffer('a', w); m.a = x; [k for k, v in m.named_buffers()]
        m = nn.Module(); m.register_buffer('a', None); m.a = x; [k for k, v in m.named_buffers()]
        m = nn.Module(); m.register_buffer('a', w); m.register_buffer('a', x); m.a
        m = nn.Module(); m.register_buffer('a', w); m.a = nn.Parameter(x); [[k for k, v in m.named_parameters()], [k for k, v in m.named_buffers()]]
        m = nn.Module(); m.register_buffer('a', w); m.a = nn.Parameter(x); m.register_parameter('a', nn.Parameter(x)); list(m.state_dict())
        m = nn.Module(); m.add_module('a.b', nn.ReLU())
        m = nn.Module(); m.add_module('', nn.ReLU())
        m = nn.Module(); m.add_module('a', 3)
        m = nn.Module(); m.add_module(3, nn.ReLU())
        m = nn.Module(); m.add_module('forward', nn.ReLU())
        m = nn.Module(); m.a = 3; m.add_module('a', nn.ReLU())
        m = nn.Module(); m.register_module('a', nn.ReLU()); str(m)
        class Net(nn.Module):\n    def __init__(self): self.a = nn.Parameter(w)\nNet()
        class Net(nn.Module):\n    def __init__(self): self.a = nn.ReLU()\nNet()
        class Net(nn.Module):\n    def __init__(self): self.register_buffer('a', w)\nNet()
        class Net(nn.Module):\n    def __init__(self): self.register_parameter('a', nn.Parameter(w))\nNet()
        class Net(nn.Module):\n    def __init__(self): self.a = 3\nNet().a
        class Net(nn.Module):\n    def __init__(self): pass\nNet()(x)
        class Net(nn.Module):\n    def __init__(self): pass\nNet().training
        class Net(nn.Module):\n    def __init__(self): pass\nlist(Net().parameters())
        class Net(nn.Module): pass\nNet()(x)
        class Net(nn.Module): pass\nNet().forward(x)
        class Net(nn.Module):\n    @property\n    def a(self): return self.no_such\nNet().a
        hasattr(nn.Linear(2, 3), 'weight'), hasattr(nn.Linear(2, 3), 'no_such')
        [n for n in ('weight', 'bias', 'forward') if n in dir(nn.Linear(2, 3))]
        '0' in dir(nn.Sequential(nn.ReLU()))
        nn.Parameter()
        nn.Parameter(w).requires_grad
        nn.Parameter(w, requires_grad=False).requires_grad
        nn.Parameter(w).is_leaf, nn.Parameter(w * 2).is_leaf, nn.Parameter(nn.Parameter(w) * 2).is_leaf
        nn.Parameter(torch.tensor([1]))
        nn.Parameter(torch.tensor([1]), requires_grad=False)
        nn.Parameter([1.])
        isinstance(nn.Parameter(w), torch.Tensor), type(nn.Parameter(w) + 1).__name__, type(nn.Parameter(w).data).__name__, type(nn.Parameter(w).detach()).__name__
        nn.Parameter(w).data_ptr() == w.data_ptr()
        isinstance(nn.Buffer(w), torch.Tensor)
        m = nn.Module(); m.a = nn.Buffer(w); [k for k, v in m.named_buffers()]
        m = nn.Module(); m.a = nn.Buffer(w, persistent=False); list(m.state_dict())
    """,
    "trees": r"""
        s = nn.Sequential(nn.Linear(1, 2), nn.Sequential(nn.ReLU(), nn.Linear(2, 1))); [k for k, v in s.named_modules()]
        s = nn.Sequential(nn.Linear(1, 2), nn.Sequential(nn.ReLU(), nn.Linear(2, 1))); [k for k, v in s.named_modules(prefix='p')]
        a = nn.Linear(1, 1); s = nn.Sequential(a, a); [[k for k, v in s.named_modules()], [k for k, v in s.named_modules(remove_duplicate=False)]]
        a = nn.Linear(1, 1); s = nn.Sequential(a, a); [[k for k, v in s.named_parameters()], [k for k, v in s.named_parameters(remove_duplicate=False)], list(s.state_dict())]
        a = nn.Linear(1, 1); b = nn.Linear(1, 1); b.weight = a.weight; s = nn.Sequential(a, b); [[k for k, v in s.named_parameters()], [k for k, v in s.named_parameters(remove_duplicate=False)], len(list(s.parameters()))]
        s = nn.Sequential(nn.Linear(1, 2), nn.Linear(2, 1)); [[k for k, v in s.named_parameters(recurse=False)], [k for k, v in s.named_parameters(prefix='p')]]
        a = nn.BatchNorm1d(1); s = nn.Sequential(a, a); [[k for k, v in s.named_buffers()], len([k for k, v in s.named_buffers(remove_duplicate=False)])]
        a = nn.Linear(1, 1); s = nn.Sequential(a, a, nn.ReLU()); [[k for k, v in s.named_children()], len(list(s.children())), len(list(s.modules()))]
        s = nn.Sequential(nn.Linear(1, 2), nn.Sequential(nn.ReLU())); [str(s.get_submodule('1.0')), s.get_submodule('') is s]
        nn.Sequential(nn.ReLU()).get_submodule('1')
        nn.Linear(1, 1).get_submodule('weight')
        s = nn.Sequential(nn.Linear(1, 2)); s.get_parameter('0.weight') is s[0].weight
        nn.Sequential(nn.Linear(1, 2)).get_parameter('0.no')
        nn.BatchNorm1d(2).get_parameter('running_mean')
        nn.BatchNorm1d(2).get_buffer('running_mean')
        nn.BatchNorm1d(2).get_buffer('weight')
        seen = []; s = nn.Sequential(nn.Linear(1, 2), nn.Sequential(nn.ReLU())); r = s.apply(lambda m: seen.append(type(m).__name__)); [seen, r is s]
        s = nn.Sequential(nn.Dropout(), nn.Sequential(nn.ReLU())); s.eval(); a = [m.training for m in s.modules()]; s.train(); [a, [m.training for m in s.modules()]]
        nn.Linear(1, 1).train(3)
        s = nn.Sequential(nn.Linear(1, 1)); r = s.requires_grad_(False); [r is s, [p.requires_grad for p in s.parameters()]]
        s = nn.Linear(3, 1); s(x).sum().backward(); s.zero_grad(); s.weight.grad
        s = nn.Linear(3, 1); s(x).sum().backward(); s.zero_grad(set_to_none=False); s.weight.grad.tolist()
        s = nn.Linear(3, 1); p = s.weight; s.double(); [p is s.weight, s.weight.dtype, s.float().weight.dtype]
        s = nn.Linear(3, 1); s(x).sum().backward(); s.double(); [s.weight.grad.dtype, s.bias.grad]
        s = nn.BatchNorm1d(3); s.double(); [s.running_mean.dtype, s.num_batches_tracked.dtype]
        s = nn.Linear(3, 1); [s.to(torch.float64) is s, s.weight.dtype]
        nn.Linear(3, 1).to(torch.int32)
        nn.Linear(3, 1).to('no_such')
        s = nn.Linear(3, 1); s.to(x.double()).weight.dtype
        s = nn.Linear(3, 1); s.to(device='cpu', dtype=torch.float64).weight.dtype
        s = nn.Linear(3, 1); [s.type(torch.float64) is s, s.weight.dtype]
        s = nn.Linear(3, 1); c = copy.deepcopy(s); [c.weight is s.weight, bool((c.weight == s.weight).all()), type(c.weight).__name__, c.weight.requires_grad]
        a = nn.Linear(1, 1); s = nn.Sequential(a, a); c = copy.deepcopy(s); c[0] is c[1]
        a = nn.Linear(1, 1); b = nn.Linear(1, 1); b.weight = a.weight; c = copy.deepcopy(nn.Sequential(a, b)); c[0].weight is c[1].weight
        s = nn.Linear(3, 1); s(x).sum().backward(); c = copy.deepcopy(s); [c.weight.grad is s.weight.grad, c.weight.grad]
        s = copy.copy(nn.Linear(3, 1)); str(s)
        s = nn.Sequential(nn.Linear(3, 1), nn.BatchNorm1d(1)).eval(); c = pickle.loads(pickle.dumps(s)); [str(c), c.training, c[0].weight.requires_grad, type(c[0].weight).__name__, bool((c[0].weight == s[0].weight).all())]
        pickle.loads(pickle.dumps(nn.Parameter(w)))
        s = nn.Linear(3, 1).to_empty(device='cpu'); s.weight.shape
        s = nn.Linear(3, 1); s.extra = 3; s.__dict__['extra']
    """,
    "hooks": r"""
        out = []; m = nn.Linear(3, 1); h = m.register_forward_hook(lambda m, a, y: out.append((type(a).__name__, len(a), list(y.shape)))); m(x); h.remove(); m(x); out
        m = nn.Identity(); m.register_forward_hook(lambda m, a, y: y + 1); m(x)
        m = nn.Identity(); m.register_forward_pre_hook(lambda m, a: a[0] + 1); m(x)
        m = nn.Identity(); m.register_forward_pre_hook(lambda m, a: (a[0] + 2,)); m(x)
        out = []; m = nn.Identity(); [m.register_forward_hook(lambda m, a, y, k=k: out.append(k)) for k in range(3)]; m.register_forward_hook(lambda m, a, y: out.append('first'), prepend=True); m(x); out
        out = []; m = nn.Identity(); [m.register_forward_pre_hook(lambda m, a, k=k: out.append(k)) for k in range(3)]; m.register_forward_pre_hook(lambda m, a: out.append('first'), prepend=True); m(x); out
        class Net(nn.Module):\n    def forward(self, a, scale=1): return a * scale\nm = Net(); m.register_forward_pre_hook(lambda m, a, k: (a, {'scale': 3}), with_kwargs=True); m(x, scale=2)
        class Net(nn.Module):\n    def forward(self, a, scale=1): return a * scale\nout = []; m = Net(); m.register_forward_hook(lambda m, a, k, y: out.append(sorted(k)), with_kwargs=True); m(x, scale=2); out
        class Net(nn.Module):\n    def forward(self, a, scale=1): return a * scale\nm = Net(); m.register_forward_pre_hook(lambda m, a, k: 3, with_kwargs=True); m(x, scale=2)
        out = []; m = nn.Linear(3, 1); m.register_full_backward_hook(lambda m, i, o: out.append((len(i), i[0], len(o), o[0].tolist()))); m(x).sum().backward(); out
        out = []; m = nn.Sequential(nn.Linear(3, 2), nn.ReLU()); m.register_full_backward_hook(lambda m, i, o: out.append(tuple(o[0].shape))); a = x.clone().requires_grad_(); m(a).sum().backward(); [out, a.grad is not None]
        m = nn.Identity(); m.register_full_backward_hook(lambda m, i, o: (i[0] * 10,)); a = x.clone().requires_grad_(); m(a).sum().backward(); a.grad
        m = nn.Tanh(); out = []; h = m.register_full_backward_hook(lambda m, i, o: out.append(1)); h.remove(); a = x.clone().requires_grad_(); m(a).sum().backward(); out
        m = nn.Identity(); m.register_full_backward_pre_hook(lambda m, o: (o[0] * 3,)); a = x.clone().requires_grad_(); (m(a) * 1).sum().backward(); a.grad
        out = []; m = nn.Tanh(); [m.register_full_backward_hook(lambda m, i, o, k=k: out.append(k)) for k in 'ab']; m.register_full_backward_hook(lambda m, i, o: out.append('first'), prepend=True); a = x.clone().requires_grad_(); m(a).sum().backward(); out
        class Net(nn.Module):\n    def forward(self, a, b): return a * b, a + b\nout = []; m = Net(); m.register_full_backward_hook(lambda m, i, o: out.append((len(i), len(o), i[1]))); a = x.clone().requires_grad_(); (lambda y: (y[0] + 3 * y[1]).sum().backward())(m(a, x * 2)); [out, a.grad]
        class Net(nn.Module):\n    def forward(self, a): return {'y': a * 2}\nout = []; m = Net(); m.register_forward_hook(lambda m, a, y: out.append(type(y).__name__)); m(x); out
        class Net(nn.Module):\n    def forward(self, a): raise KeyError('x')\nout = []; m = Net(); m.register_forward_hook(lambda m, a, y: out.append(1), always_call=True)\ntry: m(x)\nexcept KeyError: pass\nout
        m = nn.Linear(3, 1); h = m.register_forward_hook(lambda *a: None); [len(m._forward_hooks), h.remove(), len(m._forward_hooks)]
        out = []; m = nn.Linear(3, 1)\nwith m.register_forward_hook(lambda *a: out.append(1)): m(x)\nm(x); out
        out = []; m = nn.Linear(2, 2); h = m.register_state_dict_post_hook(lambda m, s, p, l: out.append(p)); m.state_dict(); out
        out = []; m = nn.Linear(2, 2); h = m.register_load_state_dict_post_hook(lambda m, k: out.append(len(k.missing_keys))); m.load_state_dict({}, strict=False); out
    """,
    "results": r"""
        [nn.Linear(3, 2)(x).shape, nn.Linear(3, 2)(x[0]).shape, nn.Linear(3, 2)(x[None]).shape, nn.Linear(3, 2)(x[:0]).shape]
        nn.Linear(3, 2)(x).grad_fn.name(), nn.Linear(3, 2, bias=False)(x).grad_fn.name(), nn.Linear(3, 2)(x[None]).grad_fn.name()
        nn.Linear(4, 2)(x)
        nn.Linear(3, 2)(x.long())
        nn.Linear(3, 2)(x.double())
        nn.Linear(3, 2)([1., 2., 3.])
        nn.Linear(3, 2)(torch.tensor(1.))
        nn.LazyLinear(2)(x).shape
        m = nn.LazyLinear(2); m(x); [type(m).__name__, type(m.weight).__name__, m.in_features, str(m)]
        m = nn.LazyLinear(2); m.weight.shape
        m = nn.LazyLinear(2); m.has_uninitialized_params()
        m = nn.LazyLinear(2); m.double(); m(x.double()).dtype
        nn.Bilinear(2, 3, 4)(x, x).shape
        nn.Bilinear(3, 3, 4)(x, x).shape
        nn.Bilinear(3, 3, 4)(x, x[:1])
        nn.LayerNorm(4)(x)
        nn.LayerNorm(3)(x)
        nn.BatchNorm1d(2)(x)
        nn.BatchNorm1d(3)(x)
        nn.BatchNorm1d(3)(x[0])
        nn.BatchNorm1d(3)(x[:1])
        nn.BatchNorm1d(3).eval()(x[:1])
        nn.BatchNorm2d(3)(x)
        nn.BatchNorm2d(2)(x.reshape(1, 2, 3, 1))
        m = nn.BatchNorm1d(3); m(x); m(x); [m.running_mean, m.running_var, m.num_batches_tracked]
        m = nn.BatchNorm1d(3, momentum=None); m(x); m(x + 1); [m.running_mean, m.num_batches_tracked]
        nn.Dropout(0.5).eval()(x)
        nn.Dropout(0.)(x)
        nn.Dropout(1.)(x)
        nn.MSELoss()(x, x[:1])
        nn.MSELoss()(x, x.T)
        nn.L1Loss(reduction='none')(x, -x)
        nn.CrossEntropyLoss()(x, t)
        nn.CrossEntropyLoss()(x, t[:1])
        nn.CrossEntropyLoss()(x, F.softmax(x, 1))
        nn.CrossEntropyLoss()(x, t.float())
        nn.CrossEntropyLoss()(x, x.T)
        nn.CrossEntropyLoss(weight=x[0, :2])(x, t)
        nn.NLLLoss()(x, t)
        nn.NLLLoss()(x, t[:1])
        nn.NLLLoss()(x, t.float())
        nn.BCELoss()(x.sigmoid(), x[:1].sigmoid())
        nn.BCEWithLogitsLoss()(x, x[0])
        nn.KLDivLoss(reduction='batchmean')(x, F.softmax(x, 1))
        nn.Sequential(nn.Linear(3, 2), nn.Linear(3, 2))(x)
    """,
    "names of what recorded results": r"""
        a = x.abs().requires_grad_(); [f(a).grad_fn.name() for f in (nn.ReLU(), nn.LeakyReLU(), nn.ELU(), nn.GELU(), nn.GELU('tanh'), nn.SiLU(), nn.Sigmoid(), nn.Tanh(), nn.Softplus(), F.logsigmoid)]
        a = x.abs().requires_grad_(); [f(a, x).grad_fn.name() for f in (nn.MSELoss(), nn.MSELoss(reduction='none'), nn.MSELoss(reduction='sum'), nn.L1Loss(), nn.L1Loss(reduction='none'), nn.SmoothL1Loss(), nn.SmoothL1Loss(reduction='none'), nn.HuberLoss())]
        a = x.abs().requires_grad_(); [f(a, x.abs()).grad_fn.name() for f in (nn.BCELoss(), nn.BCELoss(reduction='none'), nn.BCEWithLogitsLoss(), nn.BCEWithLogitsLoss(reduction='sum'))]
        str(nn.MSELoss()(x.requires_grad_(), torch.zeros(2, 3, device='cpu').to(x.device)).cpu() * 1)
        F.mse_loss(x, x).grad_fn
        [nn.Linear(3, 2)(x).grad_fn.name(), nn.Linear(3, 2)(x[0]).grad_fn.name(), nn.Bilinear(3, 3, 2)(x, x).grad_fn.name(), nn.Flatten()(nn.Linear(3, 2)(x)[None]).grad_fn.name(), nn.Embedding(3, 2)(t).grad_fn.name()]
    """,
    "results, on the CPU": r"""
        nn.Dropout()(x.requires_grad_()).grad_fn.name()
        nn.BCELoss()(x + 5, x.sigmoid())
        nn.CrossEntropyLoss()(x, t + 1)
        nn.CrossEntropyLoss()(x, -t)
        nn.NLLLoss()(x, t + 1)
    """,
    "initial values": r"""
        nn.init.trunc_normal_(torch.empty(2, 3), a=3., b=2.)
        nn.init.calculate_gain('relu'), nn.init.calculate_gain('tanh'), nn.init.calculate_gain('leaky_relu', 0.2), nn.init.calculate_gain('selu'), nn.init.calculate_gain('conv2d')
        nn.init.calculate_gain('other')
        nn.init.xavier_uniform_(torch.empty(3))
        nn.init.kaiming_normal_(torch.empty(2, 3), mode='other')
        nn.init.eye_(torch.empty(3))
        nn.init.eye_(torch.empty(2, 3))
        nn.init.orthogonal_(torch.empty(3))
        nn.init.dirac_(torch.empty(2, 2, 3))
        nn.init.constant_(torch.empty(2), 3.5)
        p = nn.Parameter(torch.empty(2)); nn.init.ones_(p) is p
        nn.init.zeros_(nn.Parameter(torch.empty(2))).requires_grad
    """,
    "initial values, on the CPU": r"""
        nn.init.trunc_normal_(torch.empty(4, 5))
        nn.init.trunc_normal_(torch.empty(40), a=-0.5, b=1.)
        nn.init.trunc_normal_(torch.empty(4, 5), std=0.02)
        nn.init.trunc_normal_(torch.empty(4, 5), 1., 2., 0., 0.5)
        nn.init.trunc_normal_(torch.empty(30), 0., 1., 3., 4.)
        nn.init.trunc_normal_(torch.empty(5, dtype=torch.float64), 0., 1., -1., 1.)
        nn.init.trunc_normal_(torch.empty(20), generator=torch.Generator().manual_seed(7))
        nn.init.orthogonal_(torch.empty(3, 3))
        nn.init.orthogonal_(torch.empty(5, 3), gain=2.)
        nn.init.orthogonal_(torch.empty(2, 3, 2))
        nn.init.kaiming_uniform_(torch.empty(3, 4), a=0.1, mode='fan_out', nonlinearity='leaky_relu')
        nn.init.xavier_normal_(torch.empty(3, 4, 2), gain=0.5)
        nn.Linear(3, 2).weight
        nn.Linear(3, 2).bias
        nn.Bilinear(2, 3, 2).weight
        m = nn.Linear(3, 2); m.reset_parameters(); m.bias
    """,
    "utilities": r"""
        v = nn.utils.parameters_to_vector([x, w]); v
        a, b = torch.zeros(2, 3), torch.zeros(2); nn.utils.vector_to_parameters(torch.arange(8.), [a, b]); [a, b]
        nn.utils.vector_to_parameters([1.], [w])
        p = nn.Parameter(w); (p * 2).sum().backward(); nn.utils.clip_grad_value_([p], 0.5); p.grad
        p = nn.Parameter(w); (p * 2).sum().backward(); [nn.utils.clip_grad_norm_(p, 1.), p.grad]
        p = nn.Parameter(w); (p * float('inf')).sum().backward(); nn.utils.clip_grad_norm_(p, 1., error_if_nonfinite=True)
        p = nn.Parameter(w); (p * 2).sum().backward(); [nn.utils.clip_grad_norm_(p, 1., norm_type='inf'), p.grad]
        nn.utils.clip_grad_norm_([], 1.)
        p = nn.Parameter(w); (p * 2).sum().backward(); nn.utils.get_total_norm([p.grad])
    """,
}


def lines(cases):
    for heading, block in cases.items():
        for line in filter(None, map(str.strip, block.splitlines())):
            yield heading, line.replace("\\n", "\n")


def answer(source, torch):
    """The described value of source, or the exception that it raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            value = run(source, {"torch": torch})
        except Exception as error:
            return {"raises": type(error).__name__, "builtin": builtin_name(error)}
        return describe_or_text(value, torch)


def make(torch, setup=SETUP, cases=CASES):
    return {
        "setup": setup,
        "cases": [
            [heading, line, answer(f"{setup}\n{line}", torch)]
            for heading, line in lines(cases)
        ],
    }
