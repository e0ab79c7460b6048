"""Records of layers of several functions: recurrent ones, and attention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pydevtensor as torch
from pydevtensor import nn
from pydevtensor.onnx._functional import masked, pair, scaled
from pydevtensor.onnx._records import Arguments, layer, refused
from pydevtensor.onnx._writer import Ref, Writer, values

# --- recurrent layers

# The gates in the order of ONNX, by their numbers in PyTorch.
_GATES = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2), "RNN": (0,)}


@layer(nn.RNNBase)
def _recurrent(w: Writer, m: Any, a: Arguments) -> Any:
    kind, x = type(m).__name__, a.input
    if kind not in _GATES or m.proj_size:
        raise refused(f"a {kind} with proj_size, or of a class of its own")
    if x.dim() != 3:
        raise refused("a recurrent layer without a dimension of batches")
    found, last = m(x.value, values(a.hx))
    firsts = list(a.hx) if isinstance(a.hx, (tuple, list)) else [a.hx]
    if m.batch_first:
        x = w.call("transpose", x, 0, 1)
    name = x.name
    lasts = []
    for n in range(m.num_layers):
        name, ends = _one_of_layers(w, m, n, name, firsts)
        lasts.append(ends)
    if m.batch_first:
        name = w.put("Transpose", name, perm=[1, 0, 2])
    joined = [w.put("Concat", *each, axis=0) for each in zip(*lasts, strict=True)]
    if kind == "LSTM":
        both = zip(joined, last, strict=True)
        return Ref(name, found), tuple(Ref(a, b) for a, b in both)
    return Ref(name, found), Ref(joined[0], last)


def _one_of_layers(
    w: Writer, m: Any, n: int, name: str, firsts: list[Any]
) -> tuple[str, list[str]]:
    """The name of layer n's result, and the names of its last states."""
    kind, ways = type(m).__name__, 2 if m.bidirectional else 1
    weights = [_weights(m, n, way, kind) for way in range(ways)]
    stacked = [
        None if p[0] is None else torch.stack(p) for p in zip(*weights, strict=True)
    ]
    out, *ends = w.put(
        kind,
        name,
        *("" if p is None else w.of(p) for p in (*stacked, None)),
        *(_first(w, s, n * ways, ways) for s in firsts),
        outputs=3 if kind == "LSTM" else 2,
        hidden_size=m.hidden_size,
        direction="bidirectional" if ways == 2 else "forward",
        linear_before_reset=1 if kind == "GRU" else None,
        activations=_activations(m, kind, ways),
    )
    # From (time, ways, batch, size) to (time, batch, ways * size).
    turned = w.put("Transpose", out, perm=[0, 2, 1, 3])
    return w.put("Reshape", turned, w.ints([0, 0, ways * m.hidden_size])), ends


def _first(w: Writer, state: Any, start: int, ways: int) -> str:
    """The first state of a layer, a slice of all layers' states."""
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
        return torch.cat([gates[i] for i in _GATES[kind]])

    biases = turned("bias_ih"), turned("bias_hh")
    joined = None if biases[0] is None else torch.cat(biases)
    return [turned("weight_ih"), turned("weight_hh"), joined]


# --- transposed convolution, normalization of instances


@layer(nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
def _conv_transpose(w: Writer, m: Any, a: Arguments) -> Any:
    if a.output_size is not None:
        raise refused("output_size of a transposed convolution; use output_padding")
    n = m.weight.dim() - 2
    given = [a.input, m.weight] + ([] if m.bias is None else [m.bias])
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
    return Ref(name, m(a.input.value))


@layer(nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d)
def _instance_norm(w: Writer, m: Any, a: Arguments) -> Any:
    x = a.input
    found = m(x.value)
    if m.track_running_stats:
        mean, var = m.running_mean, m.running_var
        ones = torch.ones_like(mean) if m.weight is None else m.weight
        zeros = torch.zeros_like(mean) if m.bias is None else m.bias
        parts = ones, zeros, mean, var
        return Ref(w.put("BatchNormalization", x, *parts, epsilon=m.eps), found)
    one = torch.ones(x.shape[1], dtype=found.dtype)
    name = w.put("InstanceNormalization", x, one, torch.zeros_like(one), epsilon=m.eps)
    return Ref(scaled(w, name, m.weight, m.bias, x.dim()), found)


# --- attention


@layer(nn.MultiheadAttention)
def _heads(w: Writer, m: Any, a: Arguments) -> Any:
    if not m._qkv_same_embed_dim or m.bias_k is not None or m.add_zero_attn:
        raise refused("MultiheadAttention with kdim, vdim, add_bias_kv, add_zero_attn")
    if a.key_padding_mask is not None or a.query.dim() != 3:
        raise refused("MultiheadAttention with key_padding_mask, or without a batch")
    parts = [a.query, a.key, a.value]
    if not m.batch_first:
        parts = [w.call("transpose", each, 0, 1) for each in parts]
    queries, keys, heads = _projected(w, m, parts)
    scores = w.call("matmul", queries, w.call("permute", keys, (0, 1, 3, 2)))
    scores = w.call("mul", scores, m.head_dim**-0.5)
    chances = w.call("softmax", masked(w, scores, a.attn_mask, hides=True), -1)
    joined = w.call("permute", w.call("matmul", chances, heads), (0, 2, 1, 3))
    joined = w.call("reshape", joined, (*joined.shape[:2], m.embed_dim))
    found = w.call("linear", joined, m.out_proj.weight.detach(), m.out_proj.bias)
    if not m.batch_first:
        found = w.call("transpose", found, 0, 1)
    if not a.need_weights:
        return found, None
    return found, w.call("mean", chances, 1) if a.average_attn_weights else chances


def _projected(w: Writer, m: Any, parts: list[Any]) -> list[Any]:
    """Queries, keys and values, (batch, heads, length, size) each."""
    weights = m.in_proj_weight.detach().chunk(3)
    biases = (None,) * 3
    if m.in_proj_bias is not None:
        biases = m.in_proj_bias.detach().chunk(3)
    heads = []
    for each, weight, bias in zip(parts, weights, biases, strict=True):
        made = w.call("linear", each, weight, bias)
        made = w.call("reshape", made, (*made.shape[:2], m.num_heads, m.head_dim))
        heads.append(w.call("permute", made, (0, 2, 1, 3)))
    return heads


# --- transformers


def _block(w: Writer, m: Any, x: Any, norm: Any, body: Any) -> Any:
    """x and what body gives of it, normalized before or after."""
    if m.norm_first:
        return w.call("add", x, body(_norm(w, norm, x)))
    return _norm(w, norm, w.call("add", x, body(x)))


def _norm(w: Writer, m: Any, x: Any) -> Any:
    if m is None:
        return x
    shape = tuple(m.normalized_shape)
    return w.call("layer_norm", x, shape, m.weight, m.bias, m.eps)


def _feed(w: Writer, m: Any) -> Callable[[Any], Any]:
    name = getattr(m.activation, "__name__", type(m.activation).__name__.lower())

    def body(x: Any) -> Any:
        inner = w.call("linear", x, m.linear1.weight.detach(), m.linear1.bias)
        inner = w.call(name, inner)
        return w.call("linear", inner, m.linear2.weight.detach(), m.linear2.bias)

    return body


def _attend(w: Writer, m: Any, mask: Any, memory: Any = None) -> Callable[[Any], Any]:
    def body(x: Any) -> Any:
        other = x if memory is None else memory
        return w.layer(m, x, other, other, need_weights=False, attn_mask=mask)[0]

    return body


@layer(nn.TransformerEncoderLayer)
def _encoder_layer(w: Writer, m: Any, a: Arguments) -> Any:
    if a.src_key_padding_mask is not None:
        raise refused("TransformerEncoderLayer with src_key_padding_mask")
    x = _block(w, m, a.src, m.norm1, _attend(w, m.self_attn, a.src_mask))
    return _block(w, m, x, m.norm2, _feed(w, m))


@layer(nn.TransformerDecoderLayer)
def _decoder_layer(w: Writer, m: Any, a: Arguments) -> Any:
    if a.tgt_key_padding_mask is not None or a.memory_key_padding_mask is not None:
        raise refused("TransformerDecoderLayer with a mask of padding")
    x = _block(w, m, a.tgt, m.norm1, _attend(w, m.self_attn, a.tgt_mask))
    body = _attend(w, m.multihead_attn, a.memory_mask, a.memory)
    x = _block(w, m, x, m.norm2, body)
    return _block(w, m, x, m.norm3, _feed(w, m))


@layer(nn.TransformerEncoder)
def _encoder(w: Writer, m: Any, a: Arguments) -> Any:
    x = a.src
    for each in m.layers:
        x = w.layer(each, x, a.mask, a.src_key_padding_mask)
    return _norm(w, m.norm, x)


@layer(nn.TransformerDecoder)
def _decoder(w: Writer, m: Any, a: Arguments) -> Any:
    x, padding = a.tgt, (a.tgt_key_padding_mask, a.memory_key_padding_mask)
    for each in m.layers:
        x = w.layer(each, x, a.memory, a.tgt_mask, a.memory_mask, *padding)
    return _norm(w, m.norm, x)
