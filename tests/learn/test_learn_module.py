"""Both models under one trainer: who changes, what is kept between iterations, and what must not matter."""

from __future__ import annotations

import math
from datetime import timedelta

import pytest
import torch
from learn_cases import (
    END,
    FAST,
    SLOW,
    dialogue,
    judged,
    largest,
    lesson,
    qwen2,
    row_logprobs,
    step,
    verdicts,
)
from trainer_cases import Stage, furthest, quiet

from rlanything.config import LearnConfig, OptimizerConfig, TrainConfig
from rlanything.core.errors import ConfigError
from rlanything.engines import placement
from rlanything.engines.placement import Role
from rlanything.learn.batches import make_batches
from rlanything.learn.datamodule import ExperienceDataModule
from rlanything.learn.fixed_order import fixed_order
from rlanything.learn.module import JointModule, Minibatch
from rlanything.learn.packing import minibatches, policy_rows, reward_rows
from rlanything.learn.trainer import make_trainer


def with_(**more: object) -> LearnConfig:
    return FAST.model_copy(update=more)


def test_both_models_learn_from_one_iteration():
    stage = Stage()
    before = stage.weights()
    after = stage.fit(1).weights()
    moved = {name for name in before if not torch.equal(before[name], after[name])}
    assert moved == set(before)
    assert {name.split(".")[0] for name in moved} == {"policy", "reward"}


def test_a_reward_model_that_does_not_train_keeps_its_weights():
    stage = Stage(with_reward=False)
    before = {k: v.clone() for k, v in stage.reward.state_dict().items()}
    stage.fit(1)
    assert furthest(before, stage.reward.state_dict()) == 0.0
    assert not any(name.startswith("reward") for name in stage.totals[0])


def test_learning_raises_the_probability_of_what_had_an_advantage_and_lowers_the_rest():
    good, bad = (
        policy_rows(lesson([step((5, 6), (k, 9, 1))], [a]), "step")[0] for k, a in ((7, 1.0), (8, -1.0))
    )
    model = qwen2(1)
    module = JointModule(with_(updates=1), model, None)
    for row in (good, bad):
        row.old = row.reference = row_logprobs(model, [row]).tolist()
    batch = Minibatch(0, ((good,), (bad,)), ())
    quiet(max_epochs=1).fit(module, ExperienceDataModule(lambda: [batch], 1, dict, lambda state: None))
    assert float(row_logprobs(model, [good]).sum()) > sum(good.old)
    assert float(row_logprobs(model, [bad]).sum()) < sum(bad.old)


@pytest.mark.parametrize("bad", [math.inf, math.nan])
def test_a_gradient_that_is_not_finite_ends_the_run_before_it_ruins_the_weights(bad):
    (row,) = policy_rows(lesson([step((5, 6), (7, 9, 1))], [1.0]), "step")
    model = qwen2(1)
    row.old = row.reference = row_logprobs(model, [row]).tolist()
    row.weight = [bad] * len(row.weight)
    module = JointModule(with_(updates=1), model, None)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    batch = Minibatch(0, ((row,),), ())
    with pytest.raises(
        ConfigError, match=r"learn\.policy: the norm of the gradient is .*Lower learn\.policy\.lr"
    ):
        quiet(max_epochs=1).fit(module, ExperienceDataModule(lambda: [batch], 1, dict, lambda state: None))
    assert furthest(before, model.state_dict()) == 0.0


def test_the_state_of_the_optimizers_lives_on_in_the_next_iteration():
    stage = Stage().fit(3)
    for optimizer in stage.module.trainer.optimizers:
        steps = {int(state["step"]) for state in optimizer.state.values()}
        assert steps == {3 * FAST.updates}


def test_there_are_as_many_optimizer_steps_as_the_configuration_says():
    totals = Stage(with_(updates=3)).fit(1).totals[0]
    assert [len(values) for values in totals.values()] == [3] * len(totals)
    assert {name.split("/")[0] for name in totals} == {"policy", "reward"}


def test_the_size_of_a_micro_batch_changes_no_weight_and_no_statistic():
    whole, parts = (Stage(SLOW, micro_tokens=n).fit(1) for n in (100_000, 1))
    assert furthest(whole.weights(), parts.weights()) < 1e-6 < furthest(whole.weights(), Stage().weights())
    for name, values in whole.totals[0].items():
        assert parts.totals[0][name] == pytest.approx(values, abs=1e-5)


def test_statistics_of_one_iteration_do_not_leak_into_the_next():
    stage = Stage().fit(2)
    assert all(len(v) == FAST.updates for totals in stage.totals for v in totals.values())
    assert stage.totals[0] != stage.totals[1]


def test_the_first_update_of_an_iteration_starts_without_any_divergence():
    for totals in Stage().fit(2).totals:
        for name in ("policy", "reward"):
            assert abs(totals[f"{name}/kl"][0]) < 1e-9
            assert totals[f"{name}/kl"][1] > 1e-9
            assert totals[f"{name}/clipped"][0] == 0.0


def test_the_gradient_is_clipped_to_the_configured_norm():
    slow = OptimizerConfig(lr=1e-2, clip_norm=1e-9)
    stage = Stage(with_(policy=slow))
    before = stage.weights()
    seen = []
    optimizer_step = torch.optim.AdamW.step

    def step_and_look(self, *args, **kwargs):
        grads = [p.grad for group in self.param_groups for p in group["params"]]
        seen.append(float(torch.stack([g.norm() for g in grads]).norm()))
        return optimizer_step(self, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.optim.AdamW, "step", step_and_look)
        stage.fit(1)
    assert stage.totals[0]["policy/grad_norm"][0] > 0.1
    assert seen[0] == pytest.approx(1e-9, rel=1e-2)
    assert furthest(before, stage.weights()) > 0


def test_each_model_has_the_optimizer_and_the_clipping_norm_of_its_own_section(monkeypatch):
    own = {
        "policy": OptimizerConfig(lr=1e-2, betas=(0.5, 0.6), weight_decay=0.3, clip_norm=1e-3),
        "reward": OptimizerConfig(lr=1e-4, betas=(0.7, 0.8), weight_decay=0.1, clip_norm=1e-5),
    }
    norms = {}
    optimizer_step = torch.optim.AdamW.step

    def step_and_look(self, *args, **kwargs):
        (group,) = self.param_groups
        norms[group["lr"]] = float(torch.stack([p.grad.norm() for p in group["params"]]).norm())
        return optimizer_step(self, *args, **kwargs)

    monkeypatch.setattr(torch.optim.AdamW, "step", step_and_look)
    stage = Stage(with_(**own, updates=1)).fit(1)
    for model, optimizer, of in zip(
        (stage.policy, stage.reward), stage.module.trainer.optimizers, own.values(), strict=True
    ):
        (group,) = optimizer.param_groups
        assert {id(p) for p in group["params"]} == {id(p) for p in model.parameters()}
        wanted = {"lr": of.lr, "betas": of.betas, "weight_decay": of.weight_decay}
        assert {name: group[name] for name in wanted} == wanted
    clipped = {of.lr: pytest.approx(of.clip_norm, rel=1e-2) for of in own.values()}
    assert norms == clipped


def test_epsilon_says_which_ratios_are_clipped():
    configs = (SLOW.model_copy(update={"epsilon": epsilon}) for epsilon in (1e-6, 0.9))
    narrow, wide = (Stage(config).fit(1).totals[0] for config in configs)
    for model in ("policy", "reward"):
        assert narrow[f"{model}/clipped"] == [0.0, pytest.approx(1.0, abs=0.05)]
        assert wide[f"{model}/clipped"] == [0.0, 0.0]


def test_beta_weighs_the_divergence_in_the_loss():
    """The first update begins without any, so that the second one begins with the same weights for each beta."""
    free, once, twice = (Stage(with_(beta=beta)).fit(1).totals[0] for beta in (0.0, 0.5, 1.0))
    for model in ("policy", "reward"):
        more = once[f"{model}/loss"][1] - free[f"{model}/loss"][1]
        assert more > 1e-3
        assert twice[f"{model}/loss"][1] - free[f"{model}/loss"][1] == pytest.approx(2 * more, rel=1e-2)


@pytest.mark.parametrize("loss_weight", ["token", "step", "trajectory"])
def test_minibatches_are_as_many_and_weighed_as_the_configuration_says(loss_weight):
    config = with_(loss_weight=loss_weight, updates=3)
    module = JointModule(config, qwen2(1), qwen2(2))
    module._trainer = quiet(max_epochs=1)
    acted, voted = [lesson(dialogue(s)) for s in range(6)], [verdicts(judged(s)) for s in range(6)]
    batches, _ = make_batches(module, acted, voted, 0, 0)
    rows = {
        "policy": [policy_rows(one, loss_weight) for one in acted],
        "reward": [reward_rows(one, loss_weight) for one in voted],
    }
    for name, units in rows.items():
        found = [[r.weight for group in getattr(b, name) for r in group] for b in batches]
        wanted = [[r.weight for r in part] for part in minibatches(units, 3, 0, 0, name)]
        assert [sorted(part) for part in found] == [sorted(part) for part in wanted]


def test_a_judged_trajectory_is_cut_to_the_tokens_of_a_micro_batch():
    voted, most = [verdicts(judged(s, steps=5)) for s in range(4)], 40
    module = JointModule(with_(micro_batch_tokens=most, updates=2), qwen2(1), qwen2(2))
    module._trainer = quiet(max_epochs=1)
    batches, metrics = make_batches(module, [], voted, 0, 0)
    rows = [row for batch in batches for group in batch.reward for row in group]
    assert all(len(reward_rows(one, "step")[0].ids) > most for one in voted)
    assert all(len(row.ids) <= most or row.target.count(END) == 1 for row in rows)
    assert metrics["reward/rows"] == len(rows) > len(voted)


def test_a_minibatch_with_nothing_for_a_model_leaves_it_alone():
    stage = Stage()
    before = stage.weights()
    empty = [Minibatch(0, (), ()) for _ in range(FAST.updates)]
    stage.collect = lambda: empty
    after = stage.fit(1).weights()
    assert furthest(before, after) == 0.0
    assert stage.totals == [{}]


def test_the_base_reference_stays_where_it_was_while_the_model_moves():
    stage = Stage(with_(kl_reference="base"), anchored=True)
    base = {k: v.clone() for k, v in stage.policy.state_dict().items()}
    stage.fit(2)
    reference = stage.module._references["policy"]
    assert furthest(base, reference.state_dict()) == 0.0
    assert furthest(base, stage.policy.state_dict()) > 0.0
    assert not any("reference" in name for name in stage.module.state_dict())


def test_rows_of_a_later_iteration_are_anchored_to_the_base_model():
    stage = Stage(with_(kl_reference="base"), anchored=True).fit(1)
    rows = [r for batch in stage.collect() for group in batch.policy for r in group]
    base = qwen2(1)
    for row in rows:
        assert largest(row_logprobs(base, [row]) - torch.tensor(row.reference)) < 1e-5
        assert largest(torch.tensor(row.old) - torch.tensor(row.reference)) > 1e-3


@pytest.mark.parametrize(("precision", "least"), [("32-true", 0.0), ("bf16-mixed", 1e-6)])
def test_recomputed_log_probs_are_those_of_the_first_update_in_every_precision(precision, least):
    """The rows were sampled in float32; the updates compute in the trainer's formats."""
    found = {}
    for importance in ("recorded", "recomputed"):
        config = with_(importance=importance, updates=1, beta=0.0)
        stage = Stage(config, micro_tokens=config.micro_batch_tokens).fit(1, precision=precision)
        found[importance] = stage.totals[0]["policy/kl"][0], stage.totals[0]["reward/kl"][0]
    # k3 of the first update: nothing has moved yet, so that all of it is rounding.
    assert max(found["recomputed"]) < 1e-10
    assert min(found["recorded"]) >= least


@pytest.mark.parametrize(("policy", "others"), [("bf16-mixed", "32-true"), ("32-true", "bf16-mixed")])
def test_a_model_with_a_precision_of_its_own_computes_in_it_and_the_other_one_does_not(policy, others):
    both = with_(importance="recomputed", kl_reference="base")
    own = both.model_copy(update={"policy": both.policy.model_copy(update={"precision": policy})})
    found = Stage(own, anchored=True).fit(2, precision=others)
    known = {name: Stage(both, anchored=True).fit(2, precision=name) for name in (policy, others)}
    for name, precision in (("policy", policy), ("reward", others)):
        mine = {key: value for key, value in found.weights().items() if key.startswith(name)}
        assert mine
        for other, expected in known.items():
            same = [torch.equal(value, expected.weights()[key]) for key, value in mine.items()]
            assert all(same) if other == precision else not all(same)
        numbers = [{k: v for k, v in one.items() if k.startswith(name)} for one in found.totals]
        assert numbers == [
            {k: v for k, v in one.items() if k.startswith(name)} for one in known[precision].totals
        ]


def test_recorded_importance_takes_the_sampler_at_its_word():
    stage = Stage(skew=0.3).fit(1)
    assert stage.prepared == [{}, {}]
    assert stage.totals[0]["policy/kl"][0] == pytest.approx(math.exp(-0.3) + 0.3 - 1.0, rel=1e-3)


@pytest.mark.parametrize("anchored", [False, True])
def test_recomputed_importance_measures_and_corrects_the_mismatch(anchored):
    skew = -0.3
    config = with_(importance="recomputed")
    stage, plain = Stage(config, skew=skew, anchored=anchored), Stage()
    for one in (stage, plain):
        one.module._trainer = quiet(max_epochs=1)
    batches, untouched = stage.collect(), plain.collect()
    expected = math.expm1(-skew) + skew
    measured = {name: round(value, 4) for prepared in stage.prepared for name, value in prepared.items()}
    for model in ("policy", "reward"):
        assert measured.pop(f"{model}/mismatch_kl") == round(expected, 4)
        assert measured.pop(f"{model}/mismatch_max") == pytest.approx(-skew, abs=1e-4)
        for name in ("p01", "p50", "p99"):
            assert measured.pop(f"{model}/ratio_{name}") == pytest.approx(math.exp(-skew), abs=1e-3)
        assert measured.pop(f"{model}/ratio_capped") == 0.0
    assert not measured
    for found, known in zip(batches, untouched, strict=True):
        rows = [
            (a, b) for g, h in zip(found.policy, known.policy, strict=True) for a, b in zip(g, h, strict=True)
        ]
        for row, same in rows:
            assert row.old == pytest.approx(same.old, abs=1e-5)
            assert row.reference == pytest.approx(same.old, abs=1e-5)
            assert row.weight == pytest.approx([w * math.exp(-skew) for w in same.weight], rel=1e-4)


def test_importance_weights_are_cut_off_at_the_cap():
    config = with_(importance="recomputed", importance_cap=1.5)
    stage, plain = Stage(config, skew=-2.0), Stage()
    for one in (stage, plain):
        one.module._trainer = quiet(max_epochs=1)
    capped = [w for b in stage.collect() for g in b.policy for r in g for w in r.weight]
    known = [w for b in plain.collect() for g in b.policy for r in g for w in r.weight]
    assert capped == pytest.approx([1.5 * w for w in known], rel=1e-5)


def test_a_run_that_continues_from_a_checkpoint_has_bit_identical_weights(tmp_path):
    whole = Stage().fit(4, publish=tmp_path)
    rest = Stage().fit(4, resume=tmp_path / "2.ckpt")
    assert len(rest.totals) == 2
    assert rest.totals == whole.totals[2:]
    assert furthest(whole.weights(), rest.weights()) == 0.0


def test_a_run_that_continues_on_the_base_anchor_has_bit_identical_weights(tmp_path):
    config = with_(kl_reference="base")
    whole = Stage(config, anchored=True).fit(3, publish=tmp_path)
    rest = Stage(config, anchored=True).fit(3, resume=tmp_path / "1.ckpt")
    assert furthest(whole.weights(), rest.weights()) == 0.0


def test_nothing_is_collected_before_the_last_update_of_the_iteration_before():
    stage = Stage()
    seen = []
    collect = stage.collect
    stage.collect = lambda: (seen.append(stage.module.trainer.global_step), collect())[1]
    stage.fit(3)
    per_iteration = 2 * FAST.updates
    assert seen == [0, per_iteration, 2 * per_iteration]


def test_a_wrong_number_of_minibatches_is_refused():
    module = JointModule(FAST, qwen2(), None)
    data = ExperienceDataModule(lambda: [Minibatch(0, (), ())], 2, dict, lambda state: None)
    with pytest.raises(ValueError, match="collected 1 minibatches, expected 2"):
        quiet(max_epochs=1).fit(module, data)


@pytest.mark.parametrize("precision", ["bf16-true", "bf16-mixed"])
def test_the_rotary_frequencies_keep_their_digits_whatever_the_precision(precision):
    train = TrainConfig(iterations=1, precision=precision)
    format_ = placement.dtype(precision, Role.TRAINED)
    policy = qwen2(1).to(format_)  # as a checkpoint is loaded: the frequencies are no weights
    policy.model.rotary_emb.inv_freq = qwen2(1).model.rotary_emb.inv_freq
    rows = [r for seed in range(2) for r in policy_rows(lesson(dialogue(seed)), "step")]
    module = JointModule(FAST, policy, None)
    data = ExperienceDataModule(lambda: [Minibatch(0, (tuple(rows),), ())], 1, dict, lambda _: None)
    make_trainer(train, 1).fit(module, data)
    assert policy.dtype == format_
    assert torch.equal(policy.model.rotary_emb.inv_freq, qwen2(1).model.rotary_emb.inv_freq)
    assert module.totals["policy/grad_norm"][0] > 0


@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_processes_wait_for_each_other_as_long_as_the_configuration_says(strategy):
    train = TrainConfig(iterations=1, strategy=strategy, devices=2, timeout_s=7)
    assert make_trainer(train, 1).strategy._timeout == timedelta(seconds=7)


def test_sums_in_a_fixed_order_are_switched_on_for_cuda_alone_and_put_back_also_after_an_error():
    """The switch itself needs no GPU."""
    cpu, cuda = torch.device("cpu"), torch.device("cuda")
    with fixed_order(cpu):
        assert not torch.are_deterministic_algorithms_enabled()
    with fixed_order(cuda):
        assert torch.are_deterministic_algorithms_enabled()
        assert not torch.is_deterministic_algorithms_warn_only_enabled()
    assert not torch.are_deterministic_algorithms_enabled()
    torch.set_deterministic_debug_mode("warn")
    try:
        with pytest.raises(ValueError, match="within"), fixed_order(cuda):
            raise ValueError("within")
        assert torch.is_deterministic_algorithms_warn_only_enabled()
    finally:
        torch.set_deterministic_debug_mode("default")


def test_a_job_of_slurm_with_several_tasks_changes_nothing_where_torchrun_did_not_start_the_process(
    monkeypatch,
):
    for name, value in {"SLURM_JOB_NAME": "rla", "SLURM_NTASKS": "4", "SLURM_PROCID": "0"}.items():
        monkeypatch.setenv(name, value)
    for strategy in ("auto", "fsdp"):
        trainer = make_trainer(TrainConfig(iterations=1, strategy=strategy), 1)
        assert (trainer.world_size, trainer.global_rank) == (1, 0)
    started = {"TORCHELASTIC_RUN_ID": "one", "WORLD_SIZE": "2", "RANK": "0", "LOCAL_RANK": "0"}
    for name, value in (started | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}).items():
        monkeypatch.setenv(name, value)
    assert make_trainer(TrainConfig(iterations=1, strategy="ddp", devices=2), 1).world_size == 2
