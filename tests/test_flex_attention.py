"""flex_attention: what golden/flex.json, which is PyTorch's on the CPU, leaves out."""

import subprocess
import sys

import pytest

import pydevtensor as torch
from pydevtensor import nn
from pydevtensor.nn.attention.flex_attention import (
    AuxRequest,
    BlockMask,
    create_block_mask,
    flex_attention,
)


def close(a, b, tolerance):
    torch.testing.assert_close(a, b, rtol=0, atol=tolerance)


sdpa = nn.functional.scaled_dot_product_attention


def causal(b, h, q_idx, kv_idx):
    return q_idx >= kv_idx


def inputs(device, *shape, dtype=torch.float64):
    torch.manual_seed(3)
    return [torch.randn(*shape, dtype=dtype).to(device) for _ in range(3)]


def test_without_a_score_mod_it_is_scaled_dot_product_attention(device):
    q, k, v = inputs(device, 2, 4, 9, 8, dtype=torch.float32)
    mask = create_block_mask(causal, None, None, 9, 9, device=device)
    assert flex_attention(q, k, v).equal(sdpa(q, k, v))
    close(flex_attention(q, k, v, block_mask=mask), sdpa(q, k, v, is_causal=True), 1e-6)


def test_gradients_by_differences(device):
    q, k, v = (x.requires_grad_() for x in inputs(device, 1, 2, 3, 2))
    bias = torch.randn(2, 6, dtype=torch.float64).to(device).requires_grad_()

    def all_but_one(b, h, q_idx, kv_idx):
        return (q_idx >= kv_idx) & (q_idx != 1)

    mask = create_block_mask(all_but_one, None, None, 3, 3, device=device)

    def attend(q, k, v, bias):
        def shifted(score, b, h, q_idx, kv_idx):
            return score.tanh() + bias[h, q_idx - kv_idx + 3]

        request = AuxRequest(lse=True)
        out, aux = flex_attention(q, k, v, shifted, mask, return_aux=request)
        return out, aux.lse[..., ::2]  # the query in the middle has no key: -inf

    torch.autograd.gradcheck(attend, (q, k, v, bias))
    assert not attend(q, k, v, bias)[0][:, :, 1].any()


def test_largest_scores(device):
    q, k, v = inputs(device, 1, 1, 4, 2)
    mask = create_block_mask(causal, None, None, 4, 4, device=device)
    aux = flex_attention(
        q, k, v, block_mask=mask, scale=1.0, return_aux=AuxRequest(max_scores=True)
    )[1]
    scores = (q @ k.mT).masked_fill(torch.ones(4, 4).triu(1).to(device) > 0, -9.0)
    close(aux.max_scores, scores.amax(-1), 1e-12)
    assert aux.lse is None


def test_compiled(device):
    q, k, v = inputs(device, 1, 2, 5, 4)
    make = torch.compile(create_block_mask)
    mask = make(causal, None, None, 5, 5, device=device)
    attend = torch.compile(flex_attention)

    def alibi(score, b, h, q_idx, kv_idx):
        return score + (kv_idx - q_idx) * 2.0 ** -(h + 1)

    close(attend(q, k, v, alibi, mask), flex_attention(q, k, v, alibi, mask), 1e-12)


def test_documents_do_not_see_each_other(device):
    """Documents in one row give what each of them gives alone."""
    q, k, v = inputs(device, 1, 2, 7, 4)
    documents = torch.tensor([0, 0, 0, 1, 1, 1, 1], device=device)

    def mask_mod(b, h, q_idx, kv_idx):
        return (documents[q_idx] == documents[kv_idx]) & (q_idx >= kv_idx)

    mask = create_block_mask(mask_mod, None, None, 7, 7, device=device, BLOCK_SIZE=2)
    whole = flex_attention(q, k, v, block_mask=mask)
    for part in (slice(3), slice(3, 7)):
        alone = sdpa(*(x[:, :, part] for x in (q, k, v)), is_causal=True)
        close(whole[:, :, part], alone, 1e-12)


def test_no_keys_and_no_queries(device):
    q, k, v = inputs(device, 1, 2, 3, 4)

    def same(score, b, h, q_idx, kv_idx):
        return score

    none = flex_attention(q, k[:, :, :0], v[:, :, :0], same)
    assert none.tolist() == torch.zeros(1, 2, 3, 4).tolist()
    assert flex_attention(q[:, :, :0], k, v, same).shape == (1, 2, 0, 4)


def test_block_masks_are_iterated_over_and_refuse_what_is_not_there():
    mask = create_block_mask(causal, 2, 3, 8, 8, device="cpu", BLOCK_SIZE=4)
    assert [part.shape for part in mask] == [(1, 3, 8, 8)] * 2
    for index in (2, -3, (0, 3)):
        with pytest.raises(IndexError, match="which has size"):
            mask[index]
    # Indices after the blocks that count may have any value.
    lists = torch.tensor([[[1]]]).int(), torch.tensor([[[[1, 99]]]]).int()
    assert BlockMask.from_kv_blocks(*lists).to_dense().tolist() == [[[[0, 1]]]]


def test_options_of_another_kernel():
    sizes = None, None, 256, 256, "cpu"
    given = {"compute_dq_write_order": True, "dq_kv_order": False}
    mask = create_block_mask(causal, *sizes, **given)
    assert mask.sparsity() == create_block_mask(causal, *sizes).sparsity()


def test_masks_are_on_a_gpu_where_there_is_one():
    code = """
import pydevtensor as torch
torch.cuda.simulate(1)
from pydevtensor.nn.attention.flex_attention import create_block_mask, create_mask
def causal(b, h, i, j): return i >= j
print(create_block_mask(causal, 1, 1, 4, 4).kv_indices.device)
print(create_mask(causal, 1, 1, 4, 4).device)
"""
    found = subprocess.check_output([sys.executable, "-P", "-c", code], text=True)
    assert found.split() == ["cuda:0", "cuda:0"]


def test_it_is_imported_when_it_is_named():
    code = """
import sys
import pydevtensor
print("pydevtensor.nn.attention.flex_attention" in sys.modules)
print(pydevtensor.nn.attention.flex_attention.flex_attention.__name__)
"""
    found = subprocess.check_output([sys.executable, "-P", "-c", code], text=True)
    assert found.split() == ["False", "flex_attention"]
