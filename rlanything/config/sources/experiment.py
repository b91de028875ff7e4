"""Sources of the experiment's sizes: tasks, models, training, evaluation."""

from __future__ import annotations

from rlanything.config.sources.algorithm import ALFWORLD, CODING, EACH, OSWORLD
from rlanything.config.sources.source import Row, Source, code, ours, paper, row

WHOLE_FILE = "the paper gives no count; this is the whole file of the reference code's data"

GENERAL: dict[str, Row] = {
    "seed": row(ours("the paper names no seed")),
    "scale": row(ours("the name of a file")),
    "bootstrap": row(ours("the paper starts from instruct models, which need no warm start")),
    "endpoints": row(ours("the models of the paper are not behind endpoints")),
    "executor": row(ours("where environments run changes no result")),
    "arms": row(
        ours("switches; Table 1 has policy, policy_reward and full, Figure 6a outcome and step_only")
    ),
}

_ALFWORLD = ours("a panel of the text games; generated problems have it too")
_RELEASED = "the release's files hold 222 of these applications"
_POLICY = row(paper(["policy"], "3.1.2"))
_BENCHMARK = row(paper(["policy", "reward"], "3.1.3 and Table 1: Code, UT and Detect on each"))


def _panel(name: str, tasks: Row, measures: Row) -> dict[str, Row]:
    return {
        f"tasks.panels.{name}.split": row(ours("a name of this project")),
        f"tasks.panels.{name}.tasks": tasks,
        f"tasks.panels.{name}.measures": measures,
    }


TASKS: dict[str, Row] = {
    "tasks.train": row(
        paper(3500, "3.1.2: 3.5k", ours="the whole official split, 3553 games"),
        paper(4500, "3.1.2, CodeContests of difficulty 2 and less"),
        paper(
            230,
            "3.1.4; 295 with the templates of C.7",
            ours="the release's files hold 222, with 294 templates",
        ),
    ),
    **_panel("in_domain", row(paper(140, "3.1.2"), _ALFWORLD, paper(230, "3.1.2", ours=_RELEASED)), _POLICY),
    **_panel("out_of_domain", row(paper(134, "3.1.2"), _ALFWORLD, paper(139, "3.1.2")), _POLICY),
    **_panel(
        "reward_panel",
        row(paper(134, "C.2"), _ALFWORLD, ours("C.2: the tasks of Multiple Apps, without a count")),
        row(paper(["reward"], "C.2: out-of-domain tasks")),
    ),
    **_panel("LiveBench", row(ours(WHOLE_FILE)), _BENCHMARK),
    **_panel("LiveCodeBench-V2", row(ours(WHOLE_FILE)), _BENCHMARK),
    **_panel("CodeContests", row(paper(200, "3.1.2")), _BENCHMARK),
    "tasks.start": row(ours("the paper starts from the environment's own tasks")),
    "tasks.start_digest": row(ours("goes with tasks.start")),
}


def _checkpoint(name: str, path: Row) -> dict[str, Row]:
    return {
        f"model.{name}.path": path,
        f"model.{name}.revision": row(ours("the paper names no revision")),
        f"model.{name}.allow_pickle": row(ours("reading a pickle can run code")),
    }


_GUI = paper("Qwen/Qwen3-VL-8B-Thinking", "3.1.1")
MODEL: dict[str, Row] = {
    "model.embedded": row(ours("the paper's models are real checkpoints")),
    **_checkpoint("policy", row(paper("Qwen/Qwen2.5-7B-Instruct", "3.1.1"), osworld=_GUI)),
    **_checkpoint("reward", row(paper("Qwen/Qwen2.5-14B-Instruct", "3.1.1"), osworld=_GUI)),
    **_checkpoint("adapter", row(paper("Qwen/Qwen3-4B", "3.1.1"))),
    "model.prompts": row(ours("the content is that of C.4 to C.7, the words are not")),
    "model.action_format": row(
        paper("boxed_index", "C.4"),
        ours("the reply is the answer; the environment finds the program in it"),
        ours("C.4 has tool calls; the environment finds them in the reply"),
    ),
    "model.verdict_format": row(paper("boxed", "C.5")),
    "model.context": row(
        paper("history", "C.4, C.5: one turn with the actions and observations so far"),
        paper("chat", "C.4, C.5: a system turn and a user turn; a program is one step"),
        paper("history", "C.4, C.5"),
    ),
    "model.images.policy": row(ours("everything is read as text"), osworld=paper(3, "C.4: the three latest")),
    "model.images.reward": row(ours("everything is read as text"), osworld=paper(2, "C.5: the two latest")),
}

TRAIN: dict[str, Row] = {
    "train.iterations": row(paper(200, "C.1"), paper(300, "C.1"), paper(240, "C.1")),
    "train.seeds": row(ours("Table 2 is of three runs; the paper does not say it of the others")),
    "train.workers": row(ours("changes no result")),
    "train.precision": row(code("bf16-mixed", EACH)),
    "train.strategy": row(ours("the reference code uses DeepSpeed ZeRO-3")),
    "train.offload": row(ours("it saves a device's memory and costs time")),
    "train.exchange": row(
        ours("`last` sends fewer messages, and each device holds whole gradients until then")
    ),
    "train.accelerator": row(ours("a GPU where there is one; the paper's machines are not named")),
    "train.devices": row(
        ours("the paper names nodes, and not their devices"),
    ),
    "train.nodes": row(ours("C.1: 8 nodes for ALFWorld, 4 for coding, 12 for OSWorld")),
    "train.timeout_s": row(ours("changes no result")),
    "train.staleness": row(
        ours("in Alg. 1 the current policy samples; 1 lets sampling and learning overlap")
    ),
    "train.save_rollouts": row(ours("replay and provenance read them")),
    "train.loggers": row(ours("they change no result")),
    "train.callbacks": row(ours("the paper has none")),
}

_GREEDY: Source = code(
    0.0,
    "configs/coding_*.yaml",
    ours="at 0 the solutions of a problem would all be one, which could not be measured",
)
EVALUATE: dict[str, Row] = {
    "evaluate.temperature": row(paper(0.8, "C.1"), _GREEDY, paper(0.0, "C.1")),
    "evaluate.max_steps": row(
        paper(60, "3.1.1"), paper(1, "3.2.7"), paper(50, "3.1.1; 30 on the curves, 3.2.1")
    ),
    "evaluate.repeats": row(paper(3, "C.1"), paper(16, "C.2"), paper(3, "C.1")),
    "evaluate.votes": row(paper(3, "3.1.3"), paper(32, "C.2"), paper(3, "3.1.3")),
    "evaluate.reward_rollouts": row(paper(16, "C.2")),
    "evaluate.reward_policy": row(paper(None, "C.2: the untrained policy; Table 4 has another one")),
    "evaluate.labels": row(
        paper("judge", "C.2", ours="the environment has an exact oracle"),
        ours("a test is right or wrong by the right programs"),
        paper("judge", "C.2"),
    ),
    "evaluate.judges": row(
        ours("none where the oracle labels; the paper has 8 votes of Qwen3-32B, and of gpt-oss-20b")
    ),
    "evaluate.every": row(code(5, ALFWORLD), code(10, CODING), code(20, OSWORLD)),
    "evaluate.curve_tasks": row(
        code(140, f"{ALFWORLD}, every in-domain game"),
        ours("the whole of LiveBench, as in the reference code"),
        code(230, f"{OSWORLD}, every in-domain task"),
    ),
    "evaluate.curve_rollouts": row(ours("neither the paper nor its code has a curve of these")),
    "evaluate.cooling": row(ours("the paper has no such control")),
    "evaluate.solver": row(
        paper(
            {"path": "Qwen/Qwen3-32B"}, "3.2.9", ours="beside the policy it does not fit on a device of 80 GB"
        ),
        osworld=paper(
            {"path": "Qwen/Qwen3-VL-32B-Thinking"},
            "3.2.9",
            ours="beside the policy it does not fit on a device of 80 GB",
        ),
    ),
    "evaluate.solver_tries": row(paper(16, "3.2.9")),
}
