"""The clipped surrogate and its parts against references written out by hand."""

from __future__ import annotations

import math
import random

import pytest
import torch
from learn_cases import END, lesson, qwen2, recorded, row_logprobs, separate_logprobs, step

from rlanything.learn.losses import k3, pack, surrogate, target_logprobs
from rlanything.learn.packing import Row, idle_row, policy_rows


def row(old: list[float], reference: list[float], advantage: list[float], weight: list[float]) -> Row:
    made = Row()
    made.read([3] * (len(old) + 1), 0, None, -1, -1)
    for t, values in enumerate(zip(old, advantage, weight, strict=True)):
        made.learn(t, 3, (), *values)
    made.reference = reference
    return made


def by_hand(logprob, given: Row, epsilon: float, beta: float) -> float:
    """PPO's objective token by token, with the four cases of the clip spelled out."""
    total = 0.0
    for x, old, reference, advantage, weight in zip(
        logprob, given.old, given.reference, given.advantage, given.weight, strict=True
    ):
        ratio = math.exp(x - old)
        kept = min(ratio, 1 + epsilon) if advantage >= 0 else max(ratio, 1 - epsilon)
        gain = kept * advantage
        d = reference - x
        total += weight * (beta * (math.exp(d) - d - 1) - gain)
    return total


@pytest.mark.parametrize("seed", range(5))
def test_the_surrogate_equals_the_one_written_out_by_hand(seed):
    rng = random.Random(seed)
    draw = [[rng.uniform(-3, 0) for _ in range(20)] for _ in range(3)]
    advantage = [rng.gauss(0, 1) for _ in range(20)]
    weight = [rng.random() for _ in range(20)]
    given = row(draw[0], draw[1], advantage, weight)
    loss, stats = surrogate(torch.tensor(draw[2]), pack([given]), 0.2, 0.01)
    assert float(loss) == pytest.approx(by_hand(draw[2], given, 0.2, 0.01), rel=1e-5)
    assert float(stats["loss"]) == float(loss)


@pytest.mark.parametrize("unlikely", [0.0, -20.0, -500.0])
def test_a_row_that_fills_up_moves_nothing_however_unlikely_its_token_is(unlikely):
    logprob = torch.tensor([unlikely], requires_grad=True)
    loss, stats = surrogate(logprob, pack([idle_row()]), 0.2, 0.01)
    loss.backward()
    assert loss.item() == logprob.grad.item() == 0.0
    assert all(float(value) == 0.0 for value in stats.values())


@pytest.mark.parametrize(
    ("ratio", "advantage", "slope"),
    [(1.0, 1.0, -1.0), (1.3, 1.0, 0.0), (0.7, 1.0, -0.7), (1.3, -1.0, 1.3), (0.7, -1.0, 0.0)],
)
def test_the_gradient_stops_where_the_clip_says_and_only_there(ratio, advantage, slope):
    logprob = torch.tensor([math.log(ratio)], requires_grad=True)
    loss, stats = surrogate(logprob, pack([row([0.0], [0.0], [advantage], [1.0])]), 0.2, 0.0)
    loss.backward()
    assert float(logprob.grad) == pytest.approx(slope, rel=1e-5)
    assert float(stats["clipped"]) == (0.0 if ratio == 1.0 else 1.0)


def test_the_kl_term_pulls_back_to_the_reference():
    logprob = torch.tensor([-1.0], requires_grad=True)
    loss, _ = surrogate(logprob, pack([row([-1.0], [-2.0], [0.0], [1.0])]), 0.2, 0.5)
    loss.backward()
    assert loss.item() == pytest.approx(0.5 * (math.exp(-1.0) + 1.0 - 1.0))
    assert float(logprob.grad) == pytest.approx(0.5 * (1.0 - math.exp(-1.0)))


def test_k3_is_never_negative_and_zero_only_where_both_agree():
    difference = torch.cat([torch.linspace(-5, 5, 201), torch.tensor([1e-4, -1e-4])])
    values = k3(difference.double())
    assert bool((values >= 0).all())
    assert bool((values == 0).eq(difference == 0).all())


def test_the_mean_of_k3_over_samples_is_the_exact_kl():
    p, q = torch.tensor([0.5, 0.3, 0.2]).double(), torch.tensor([0.2, 0.2, 0.6]).double()
    exact = (p * (p / q).log()).sum()
    assert float((p * k3((q / p).log())).sum()) == pytest.approx(float(exact))


def test_the_kl_statistic_is_the_exact_kl_from_the_sampling_weights_to_the_current_ones():
    """One token for each word of the vocabulary, weighted by its probability under the weights that sampled."""
    p, q = [0.5, 0.3, 0.2], [0.2, 0.2, 0.6]
    given = row([math.log(x) for x in p], [0.0] * 3, [0.0] * 3, p)
    _, stats = surrogate(torch.tensor(q).log(), pack([given]), 0.2, 0.0)
    assert float(stats["kl"]) == pytest.approx(sum(a * math.log(a / b) for a, b in zip(p, q, strict=True)))


def test_constrained_logprobs_are_renormalised_over_the_allowed_ids():
    model, allowed = qwen2(), ((7, 9, 12), (END, 4))
    (made,) = policy_rows(lesson([step((5, 6), (9, END), allowed=allowed)]), "token")
    with torch.no_grad():
        logits = model(torch.tensor([[5, 6, 9]])).logits[0, 1:]
    expected = [
        float(logits[k, list(ids)].log_softmax(-1)[list(ids).index(chosen)])
        for k, (ids, chosen) in enumerate(zip(allowed, (9, END), strict=True))
    ]
    assert row_logprobs(model, [made]).tolist() == pytest.approx(expected, abs=1e-5)


def test_the_alternatives_of_a_constrained_choice_have_probability_one_together():
    model, allowed = qwen2(), (7, 9, 12)
    rows = [policy_rows(lesson([step((5, 6), (x,), allowed=(allowed,))]), "token")[0] for x in allowed]
    assert float(row_logprobs(model, rows).exp().sum()) == pytest.approx(1.0, abs=1e-6)


def test_open_and_constrained_turns_share_a_batch_and_keep_their_own_normalisation():
    """An environment that offers actions in one turn only: the open turn is normalised over the vocabulary."""
    model = qwen2()
    turns = [step((5, 6), (9, END), allowed=((7, 9, 12), (END, 4))), step((5, 6, 9, END, 8), (11, END))]
    (both,) = policy_rows(lesson(turns), "token")
    constrained = row_logprobs(model, policy_rows(lesson(turns[:1]), "token"))
    alone = separate_logprobs(model, turns[1].prompt_ids, turns[1].response_ids)
    assert row_logprobs(model, [both]).tolist() == pytest.approx(
        [*constrained.tolist(), *alone.tolist()], abs=1e-5
    )
    target_logprobs(model, pack([both])).sum().backward()
    assert all(bool(p.grad.isfinite().all()) for p in model.parameters())


def test_the_first_unclipped_step_follows_the_policy_gradient():
    """At ratio one the surrogate's gradient is that of -sum w A log pi, and its value -sum w A."""
    model, advantages = qwen2(), [0.7, -1.3]
    turns = [step((5, 6), (9, END)), step((5, 6, 9, END, 8), (11, 13, END))]
    (made,) = recorded(policy_rows(lesson(turns, advantages), "step"), model)
    batch = pack([made])
    loss, _ = surrogate(target_logprobs(model, batch), batch, 0.2, 0.01)
    found = torch.autograd.grad(loss, list(model.parameters()))
    expected = -(batch.weight_n * batch.advantage_n * target_logprobs(model, batch)).sum()
    wanted = torch.autograd.grad(expected, list(model.parameters()))
    assert loss.item() == pytest.approx(-sum(advantages), abs=1e-4)
    assert all(torch.allclose(a, b, atol=1e-5, rtol=1e-4) for a, b in zip(found, wanted, strict=True))
    assert max(float(g.abs().max()) for g in wanted) > 1e-2
