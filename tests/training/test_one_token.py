"""The attention of one new token: beside the formula in float64, torch's own, and its edges."""

from __future__ import annotations

import copy
from types import SimpleNamespace

import pytest
import torch
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from rlnb.training.sampling import one_token
from rlnb.training.sampling.one_token import NAME, one_token_attention, reading_once

N, SHARED, GROUP, L, SIZE = 3, 2, 4, 11, 8
MODULE = SimpleNamespace(num_key_value_groups=GROUP, is_causal=True, training=False)


def drawn(dtype=torch.float64):
    """Query, keys, values and bias; keys and values are a window of longer memory."""
    make = torch.Generator().manual_seed(0)

    def normal(*shape):
        return torch.randn(*shape, generator=make, dtype=torch.float64).to(dtype)

    query = normal(N, SHARED * GROUP, 1, SIZE)
    key, value = (normal(N, SHARED, L + 5, SIZE)[:, :, :L] for _ in range(2))
    bias = torch.zeros(N, 1, 1, L, dtype=dtype)
    bias[0, ..., :4], bias[1, ..., 9:] = -torch.inf, -torch.inf
    return query, key, value, bias


def by_hand(query, key, value, bias, scaling):
    """Head by head: head h looks at the keys h // GROUP."""
    out = torch.zeros(N, 1, SHARED * GROUP, SIZE, dtype=torch.float64)
    for n in range(N):
        for h in range(SHARED * GROUP):
            scores = scaling * key[n, h // GROUP].double() @ query[n, h, 0].double()
            weights = (scores + bias[n, 0, 0].double()).softmax(0)
            out[n, 0, h] = weights @ value[n, h // GROUP].double()
    return out


@pytest.mark.parametrize("scaling", [None, 0.5])
def test_it_is_the_formula_and_torchs_own(scaling):
    given = drawn()
    found, none = one_token_attention(MODULE, *given, scaling=scaling)
    assert none is None and found.dtype == torch.float64
    torch.testing.assert_close(found, by_hand(*given, scaling or SIZE**-0.5))
    torch.testing.assert_close(found, sdpa_attention_forward(MODULE, *given, scaling=scaling)[0])


@pytest.mark.parametrize(("dtype", "gap"), [(torch.float32, 1e-6), (torch.bfloat16, 2e-2)])
def test_in_other_formats_it_rounds_no_more_than_the_format(dtype, gap):
    given = drawn(dtype)
    found, _ = one_token_attention(MODULE, *given, scaling=SIZE**-0.5)
    assert found.dtype == dtype
    assert (found.double() - by_hand(*given, SIZE**-0.5)).abs().max() < gap


def test_what_the_bias_hides_does_not_count():
    query, key, value, bias = drawn()
    before, _ = one_token_attention(MODULE, query, key, value, bias)
    key[0, :, :4], value[0, :, :4] = 100.0, 100.0
    after, _ = one_token_attention(MODULE, query, key, value, bias)
    assert torch.equal(before, after)


def test_what_it_does_not_know_goes_to_transformers_own(monkeypatch):
    query, key, value, bias = drawn()
    two = torch.cat([query, query], 2)
    found, _ = one_token_attention(MODULE, two, key, value, bias.expand(-1, -1, 2, -1))
    alone, _ = one_token_attention(MODULE, query, key, value, bias)
    torch.testing.assert_close(found[:, :1], alone)
    plain, _ = one_token_attention(MODULE, query, key, value, None)
    torch.testing.assert_close(
        plain, by_hand(query, key, value, torch.zeros_like(bias), SIZE**-0.5)
    )
    monkeypatch.setattr(one_token, "sdpa_attention_forward", lambda *args, **options: options)
    for name in ("softcap", "s_aux", "position_bias"):
        options = one_token_attention(MODULE, query, key, value, bias, **{name: 30.0})
        assert options[name] == 30.0


def test_a_model_uses_it_inside_only_also_after_an_error(shipped):
    model = copy.deepcopy(shipped[0])
    before = model.config._attn_implementation
    with pytest.raises(RuntimeError, match="inside"), reading_once(model):
        assert model.config._attn_implementation == NAME
        raise RuntimeError("inside")
    assert model.config._attn_implementation == before
