"""How layers of several functions are written: recurrent ones, attention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydevtensor import _C, nn
from pydevtensor.onnx._networks import by_channel
from pydevtensor.onnx._records import refused
from pydevtensor.onnx._writer import LAYERS, Ref, Writer, pair

# The order of the gates in ONNX, by their place in PyTorch.
_GATES = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2), "RNN": (0,)}


def layer(*kinds: type) -> Callable[[Any], Any]:
    def add(body: Any) -> Any:
        LAYERS.update(dict.fromkeys(kinds, body))
        return body

    return add


@layer(nn.RNNBase)
def _recurrent(w: Writer, m: Any, x: Any, state: Any = None) -> Any:
    kind = type(m).__name__
    if kind not in _GATES or m.proj_size:
        raise refused(f"a {kind} with proj_size, or of a class of its own")
    if x.dim() != 3:
        raise refused("a recurrent layer without a dimension of batches")
    given = None
    if state is not None:
        given = tuple(s.value for s in state) if kind == "LSTM" else state.value
    found, last = m(x.value, given)
    if m.batch_first:
        x = w.call("transpose", x, 0, 1)
    parts = _parts(state, kind)
    ways = 2 if m.bidirectional else 1
    lasts: list[list[Any]] = [[], []]
    name = x.name
    for n in range(m.num_layers):
        weights = [_weights(m, n, way, kind) for way in range(ways)]
        stacked = [
            None if p[0] is None else _C.stack(p) for p in zip(*weights, strict=True)
        ]
        first = [_first(w, s, n * ways, ways) for s in parts]
        taken = ["" if p is None else w.of(p) for p in (*stacked, None)]
        out, *ends = w.put(
            kind,
            name,
            *taken,
            *first,
            outputs=3 if kind == "LSTM" else 2,
            hidden_size=m.hidden_size,
            direction="bidirectional" if ways == 2 else "forward",
            linear_before_reset=1 if kind == "GRU" else None,
            activations=_activations(m, kind, ways),
        )
        # From (time, ways, batch, size) to (time, batch, ways * size).
        turned = w.put("Transpose", out, perm=[0, 2, 1, 3])
        name = w.put("Reshape", turned, w.ints([0, 0, ways * m.hidden_size]))
        for i, end in enumerate(ends):
            lasts[i].append(end)
    if m.batch_first:
        name = w.put("Transpose", name, perm=[1, 0, 2])
    ended = [w.put("Concat", *each, axis=0) for each in lasts if each]
    if kind == "LSTM":
        both = zip(ended, last, strict=True)
        return Ref(name, found), tuple(Ref(a, b) for a, b in both)
    return Ref(name, found), Ref(ended[0], last)


def _parts(state: Any, kind: str) -> list[Any]:
    if kind == "LSTM":
        return [None, None] if state is None else list(state)
    return [state]


def _first(w: Writer, state: Any, start: int, ways: int) -> str:
    """The first state of a layer, a part of the whole."""
    if state is None:
        return ""
    ends = [start], [start + ways], [0]
    return str(w.put("Slice", state, *map(w.ints, ends)))


def _activations(m: Any, kind: str, ways: int) -> Any:
    if kind != "RNN":
        return None
    return ["Relu" if m.nonlinearity == "relu" else "Tanh"] * ways


def _weights(m: Any, n: int, way: int, kind: str) -> list[Any]:
    """The weights of a layer in one direction, and both biases in one vector."""
    end = f"_l{n}" + "_reverse" * way

    def turned(name: str) -> Any:
        whole = getattr(m, name + end, None)
        if whole is None:
            return None
        gates = whole.detach().chunk(len(_GATES[kind]))
        return _C.cat([gates[i] for i in _GATES[kind]])

    biases = turned("bias_ih"), turned("bias_hh")
    joined = None if biases[0] is None else _C.cat(biases)
    return [turned("weight_ih"), turned("weight_hh"), joined]


@layer(nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
def _conv_transpose(w: Writer, m: Any, x: Any, output_size: Any = None) -> Any:
    if output_size is not None:
        raise refused("output_size of a transposed convolution; use output_padding")
    n = m.weight.dim() - 2
    given = [x, m.weight] + ([] if m.bias is None else [m.bias])
    name = w.put(
        "ConvTranspose",
        *given,
        kernel_shape=list(m.weight.shape[2:]),
        strides=pair(m.stride, n),
        pads=pair(m.padding, n) * 2,
        output_padding=pair(m.output_padding, n),
        dilations=pair(m.dilation, n),
        group=m.groups,
    )
    return Ref(name, m(x.value))


@layer(nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d)
def _instance_norm(w: Writer, m: Any, x: Any) -> Any:
    found = m(x.value)
    if m.track_running_stats:
        mean, var = m.running_mean, m.running_var
        ones = _C.ones_like(mean) if m.weight is None else m.weight
        zeros = _C.zeros_like(mean) if m.bias is None else m.bias
        parts = ones, zeros, mean, var
        return Ref(w.put("BatchNormalization", x, *parts, epsilon=m.eps), found)
    count = x.shape[1]
    one = _C.ones(count, dtype=found.dtype)
    name = w.put("InstanceNormalization", x, one, _C.zeros_like(one), epsilon=m.eps)
    for op, part in (("Mul", m.weight), ("Add", m.bias)):
        if part is not None:
            name = w.put(op, name, by_channel(part, x.dim()))
    return Ref(name, found)


# --- attention


@layer(nn.MultiheadAttention)
def _heads(
    w: Writer,
    m: Any,
    query: Any,
    key: Any,
    value: Any,
    key_padding_mask: Any = None,
    need_weights: bool = True,
    attn_mask: Any = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> Any:
    if not m._qkv_same_embed_dim or m.bias_k is not None or m.add_zero_attn:
        raise refused("MultiheadAttention with kdim, vdim, add_bias_kv, add_zero_attn")
    if key_padding_mask is not None or query.dim() != 3:
        raise refused("MultiheadAttention with key_padding_mask, or without a batch")
    parts = [query, key, value]
    if not m.batch_first:
        parts = [w.call("transpose", each, 0, 1) for each in parts]
    weights = m.in_proj_weight.detach().chunk(3)
    biases = (None,) * 3
    if m.in_proj_bias is not None:
        biases = m.in_proj_bias.detach().chunk(3)
    heads = []
    for each, weight, bias in zip(parts, weights, biases, strict=True):
        made = w.call("linear", each, weight, bias)
        made = w.call("reshape", made, (*made.shape[:2], m.num_heads, m.head_dim))
        heads.append(w.call("permute", made, (0, 2, 1, 3)))
    scores = w.call("matmul", heads[0], w.call("permute", heads[1], (0, 1, 3, 2)))
    scores = w.call("mul", scores, m.head_dim**-0.5)
    if attn_mask is not None:
        scores = _masked(w, scores, attn_mask)
    chances = w.call("softmax", scores, -1)
    joined = w.call("permute", w.call("matmul", chances, heads[2]), (0, 2, 1, 3))
    joined = w.call("reshape", joined, (*joined.shape[:2], m.embed_dim))
    found = w.call("linear", joined, m.out_proj.weight.detach(), m.out_proj.bias)
    if not m.batch_first:
        found = w.call("transpose", found, 0, 1)
    if not need_weights:
        return found, None
    return found, w.call("mean", chances, 1) if average_attn_weights else chances


def _masked(w: Writer, scores: Any, mask: Any) -> Any:
    value = mask.value if isinstance(mask, Ref) else mask
    if value.dtype == _C.bool:
        far = _C.tensor(float("-inf"), dtype=scores.value.dtype)
        mask = w.put("Where", mask, far, w.of(0, scores.value.dtype))
    return Ref(w.put("Add", scores, mask), scores.value)


def _block(w: Writer, m: Any, x: Any, norm: Any, body: Any) -> Any:
    """x and what body gives of it, normalized before or after."""
    if m.norm_first:
        return w.call("add", x, body(_norm(w, norm, x)))
    return _norm(w, norm, w.call("add", x, body(x)))


def _norm(w: Writer, m: Any, x: Any) -> Any:
    shape = tuple(m.normalized_shape)
    return w.call("layer_norm", x, shape, m.weight, m.bias, m.eps)


def _feed(w: Writer, m: Any) -> Any:
    name = getattr(m.activation, "__name__", type(m.activation).__name__.lower())

    def body(x: Any) -> Any:
        inner = w.call("linear", x, m.linear1.weight.detach(), m.linear1.bias)
        inner = w.call(name, inner)
        return w.call("linear", inner, m.linear2.weight.detach(), m.linear2.bias)

    return body


def _alone(w: Writer, m: Any, mask: Any, memory: Any = None) -> Any:
    def body(x: Any) -> Any:
        other = x if memory is None else memory
        return _heads(w, m, x, other, other, None, False, mask)[0]

    return body


@layer(nn.TransformerEncoderLayer)
def _encoder_layer(
    w: Writer,
    m: Any,
    src: Any,
    src_mask: Any = None,
    src_key_padding_mask: Any = None,
    is_causal: bool = False,
) -> Any:
    if src_key_padding_mask is not None:
        raise refused("TransformerEncoderLayer with src_key_padding_mask")
    x = _block(w, m, src, m.norm1, _alone(w, m.self_attn, src_mask))
    return _block(w, m, x, m.norm2, _feed(w, m))


@layer(nn.TransformerDecoderLayer)
def _decoder_layer(
    w: Writer,
    m: Any,
    tgt: Any,
    memory: Any,
    tgt_mask: Any = None,
    memory_mask: Any = None,
    tgt_key_padding_mask: Any = None,
    memory_key_padding_mask: Any = None,
    tgt_is_causal: bool = False,
    memory_is_causal: bool = False,
) -> Any:
    if tgt_key_padding_mask is not None or memory_key_padding_mask is not None:
        raise refused("TransformerDecoderLayer with a mask of padding")
    x = _block(w, m, tgt, m.norm1, _alone(w, m.self_attn, tgt_mask))
    body = _alone(w, m.multihead_attn, memory_mask, memory)
    x = _block(w, m, x, m.norm2, body)
    return _block(w, m, x, m.norm3, _feed(w, m))


@layer(nn.TransformerEncoder)
def _encoder(
    w: Writer,
    m: Any,
    src: Any,
    mask: Any = None,
    src_key_padding_mask: Any = None,
    is_causal: Any = None,
) -> Any:
    x = src
    for each in m.layers:
        x = _encoder_layer(w, each, x, mask, src_key_padding_mask)
    return x if m.norm is None else _norm(w, m.norm, x)


@layer(nn.TransformerDecoder)
def _decoder(
    w: Writer,
    m: Any,
    tgt: Any,
    memory: Any,
    tgt_mask: Any = None,
    *rest: Any,
    **named: Any,
) -> Any:
    x = tgt
    for each in m.layers:
        x = _decoder_layer(w, each, x, memory, tgt_mask, *rest, **named)
    return x if m.norm is None else _norm(w, m.norm, x)
