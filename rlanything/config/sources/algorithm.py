"""Sources of the algorithm's numbers: acting, judging, signals, adaptation, learning."""

from __future__ import annotations

from rlanything.config.sources.source import Row, Statement, code, ours, paper, row

ALFWORLD, CODING, OSWORLD = "configs/alfworld_rl.yaml", "configs/coding_rl.yaml", "configs/osworld_rl.yaml"
EACH = "configs/*_rl.yaml"
"""All three files of the reference code have the same value."""
STEPS = "reward/alfworld_rl_reward.py"
PROGRAMS = "reward/llm_rl_reward.py"
GUI = "reward/osworld_rl_reward.py"
EVERYTHING = "Alg. 2 line 39: all tasks, whatever their accuracy"

ROLLOUT: dict[str, Row] = {
    "rollout.tasks": row(paper(16, "3.1.1"), paper(64, "3.1.1"), paper(12, "3.1.1")),
    "rollout.rollouts": row(paper(8, "3.1.1"), paper(32, "3.1.1"), paper(8, "3.1.1")),
    "rollout.max_steps": row(paper(40, "3.1.1"), paper(1, "3.2.7"), paper(30, "3.1.1")),
    "rollout.temperature": row(paper(0.8, "C.1"), code(1.0, CODING), paper(1.0, "C.1")),
    "rollout.decoding": row(paper("free", "C.4")),
    "rollout.max_tokens": row(code(2000, ALFWORLD), code(2048, CODING), code(2048, OSWORLD)),
    "rollout.timeout_s": row(ours("an environment can hang")),
}

JUDGE: dict[str, Row] = {
    "judge.writes": row(paper("votes", "3.1.3"), paper("tests", "3.1.3"), paper("votes", "3.1.3")),
    "judge.source": row(paper("model", "3.1.1")),
    "judge.accuracy": row(ours("the oracle is a control that the paper does not have")),
    "judge.systematic": row(ours("as judge.accuracy")),
    "judge.m": row(
        paper(3, "3.1.3"),
        paper(32, "3.1.1", Statement(16, CODING)),
        paper(3, "3.1.1"),
    ),
    "judge.temperature": row(paper(0.8, "C.1"), code(0.8, CODING), paper(0.8, "C.1")),
    "judge.max_tokens": row(code(4000, ALFWORLD), code(2048, CODING), code(8096, OSWORLD)),
    "judge.max_invalid": row(ours("a reward model that no longer answers should not train for days")),
}

SIGNALS: dict[str, Row] = {
    "signals.lambda": row(
        paper(1.0, "2.1"),
        paper(0.0, "Alg. 2 line 17: the reward has no other term"),
        paper(1.0, "2.1"),
    ),
    "signals.reward_lambda": row(
        ours("null: the same as signals.lambda, as in all of the paper but Table 2")
    ),
    "signals.written": row(ours("in the paper's coding experiment this term has no weight")),
    "signals.advantage_scale": row(paper("step", "Alg. 1 line 9")),
    "signals.policy_min": row(
        paper(0.0, EVERYTHING, Statement(0.125, STEPS)),
        paper(0.0, EVERYTHING, Statement(0.2, PROGRAMS)),
        paper(0.0, EVERYTHING),
    ),
    "signals.policy_max": row(
        paper(1.0, EVERYTHING, Statement(0.875, STEPS)),
        paper(1.0, EVERYTHING, Statement(0.8, PROGRAMS)),
        paper(1.0, EVERYTHING),
    ),
    "signals.reward_min": row(paper(0.2, "Alg. 2 line 40")),
    "signals.reward_max": row(paper(0.8, "Alg. 2 line 40")),
    "signals.reward_balance": row(paper("none", "Alg. 1 lines 12-13: all votes weigh the same")),
}

ADAPTATION: dict[str, Row] = {
    "adaptation.alpha_low": row(paper(0.2, "Alg. 1 line 1")),
    "adaptation.alpha_high": row(paper(0.8, "Alg. 1 line 1")),
    "adaptation.acceptance": row(
        paper("strict", "2.4", Statement("inclusive", STEPS)),
        paper("strict", "2.4", Statement("inclusive", "sample/llm_env_rollout.py")),
        paper("strict", "2.4", Statement("inclusive", GUI)),
    ),
    "adaptation.critic": row(
        paper("model", "C.6"),
        paper("extractive", "3.1.4: the adapter reads the results of the tests"),
        paper("model", "C.6"),
    ),
    "adaptation.marked": row(paper("all", "C.6"), ours("a program is one step"), paper("any", "C.6")),
    "adaptation.critic_stages": row(paper(1, "C.6"), ours("a program is one step"), paper(2, "C.6")),
    "adaptation.temperature": row(code(0.8, EACH)),
    "adaptation.max_tokens": row(
        code(8192, "sample/alfworld_rl_rollout.py"), code(8096, CODING), code(8096, OSWORLD)
    ),
    "adaptation.attempts": row(code(8, "sample/alfworld_rl_rollout.py"), code(3, CODING), code(3, OSWORLD)),
}


def _optimizer(model: str) -> dict[str, Row]:
    return {
        f"learn.{model}.lr": row(paper(1e-6, "C.1")),
        f"learn.{model}.betas": row(code([0.9, 0.999], EACH)),
        f"learn.{model}.weight_decay": row(code(0.0, EACH)),
        f"learn.{model}.clip_norm": row(code(1.0, EACH)),
        f"learn.{model}.lora": row(ours("the paper trains all weights")),
        f"learn.{model}.precision": row(ours("the reference code has one for both models")),
    }


LEARN: dict[str, Row] = {
    **_optimizer("policy"),
    **_optimizer("reward"),
    "learn.updates": row(code(4, ALFWORLD), code(2, CODING), code(4, f"{OSWORLD}; its reward model 2")),
    "learn.epsilon": row(paper(0.2, "C.1")),
    "learn.beta": row(paper(0.01, "C.1")),
    "learn.kl_reference": row(code("start_of_step", "train/*_train.py")),
    "learn.loss_weight": row(code("step", "train/*_train.py")),
    "learn.importance": row(
        ours("the reference code computes old log-probs with its trainer and corrects nothing")
    ),
    "learn.importance_cap": row(ours("the reference code corrects nothing")),
    "learn.importance_mask": row(ours("the reference code corrects nothing")),
    "learn.micro_batch_tokens": row(ours("bounds memory; changes results by rounding only")),
    "learn.gradient_checkpointing": row(ours("trades time for memory; the gradients are the same")),
}
