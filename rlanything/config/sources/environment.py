"""Sources of the environments' and the engine's arguments (`experiments/env/`, `experiments/engine/`)."""

from __future__ import annotations

from rlanything.config.endpoints import Endpoint
from rlanything.config.sources.source import Row, code, ours, paper, row

_GENERATED = ours("for generated tasks, which the paper does not have")
_SANDBOX = ours("how programs are contained changes no verdict")

ENVIRONMENT: dict[str, Row] = {
    "env._target_": row(ours("a class of this project")),
    "env.engine": row(paper("textworld", "3.1.1, through ALFWorld")),
    "env.data": row(ours("where the downloaded set is")),
    "env.on_bad_file": row(ours("some games of the set cannot be solved (envs/alfworld/README.md)")),
    "env.task_types": row(
        paper(["pick", "look", "clean", "heat", "cool", "two"], "3.1.2, the official split")
    ),
    "env.held_out": row(ours("the paper trains on all types")),
    "env.edit": row(paper("tokens", "C.7: two types, within the goal's framework")),
    "env.levels": row(_GENERATED),
    "env.receptacles": row(_GENERATED),
    "env.distractors": row(_GENERATED),
    "env.ood_levels": row(_GENERATED),
    "env.ood_receptacles": row(_GENERATED),
    "env.ood_distractors": row(_GENERATED),
    "env.habits": row(ours("the paper starts from instruct models, which have habits of their own")),
    "env.timeout": row(ours("an engine or a page can hang")),
    "env.kinds": row(_GENERATED),
    "env.ood_kinds": row(_GENERATED),
    "env.text": row(ours("the paper's agents see screenshots of OSWorld, not these pages")),
    "env.most_pages": row(ours("bounds memory; changes no result")),
    "env.chromium": row(ours("where the browser is")),
    "env.pages": row(ours("where the pages are")),
    "env.command": row(ours("how OSWorld's own program is reached")),
    "env.tasks": row(ours("where the tasks are")),
    "env.templates": row(ours("where the paper's templates are")),
    "env.index": row(ours("the 361 tasks that need no account of Google Drive")),
    "env.ood_apps": row(paper(["multi_apps", "chrome"], "3.1.2: Multiple Apps and Chrome")),
    "env.reward_apps": row(paper(["multi_apps"], "C.2: Multiple Apps")),
    "env.worlds": row(ours("12 x 8 episodes at a time; changes no result")),
    "env.observe": row(paper("screenshot", "C.4")),
    "env.screen": row(ours("OSWorld's own size")),
    "env.start": row(ours("a world can hang")),
    "env.evaluators": row(ours("pin it for a record")),
    "env.tests": row(code(8, "data/preprocess_data.ipynb: at most")),
    "env.train_tests": row(ours("the paper's benchmarks come with their tests")),
    "env.problems": row(ours("where the files are")),
    "env.form": row(code("reference", "data/preprocess_data.ipynb")),
    "env.max_difficulty": row(
        paper(
            2,
            "3.1.2, CodeContests alone",
            ours="form: reference has no difficulty; a file in it is filtered when it is prepared",
        )
    ),
    "env.on_bad_problem": row(ours("files of others hold records that cannot be run")),
    "env.rewrite_tests": row(code(4, "sample/llm_env_rollout.py")),
    "env.shown_tests": row(ours("bounds the adapter's prompt; a model that reads more can be shown more")),
    "env.critic_tests": row(paper("generated", "3.1.4")),
    "env.backend": row(_SANDBOX),
    "env.image": row(_SANDBOX),
    "env.trusted": row(_SANDBOX),
    "env.workers": row(ours("changes no result")),
    "env.memory_mb": row(ours("neither the paper nor its code has a limit")),
}

_VLLM = ours("of the engine `vllm`; changes results by rounding only")

_SERVERS = ours("of the servers of vLLM; changes results by rounding only")

ENGINE: dict[str, Row] = {
    **{
        f"engine.{key}": row(ours("the models of the paper are not behind endpoints"))
        for key in Endpoint.model_fields
    },
    "engine._target_": row(ours("the reference code samples with vLLM; the same models sample here")),
    "engine.max_batch": row(ours("bounds memory; changes results by rounding only")),
    "engine.cache_gib": row(_VLLM),
    "engine.context": row(ours("bounds memory; an episode ends where its prompt does not fit")),
    "engine.max_batched_tokens": row(_VLLM),
    "engine.dtype": row(_VLLM),
    "engine.prefix_caching": row(_VLLM),
    "engine.eager": row(_VLLM),
    "engine.tolerance": row(_VLLM),
    "engine.lora": row(_VLLM),
    "engine.replicas": row(_SERVERS),
    "engine.addresses": row(_SERVERS),
    "engine.folder": row(_SERVERS),
    "engine.start_s": row(_SERVERS),
    "engine.request_s": row(_SERVERS),
    "engine.restarts": row(_SERVERS),
    "engine.batch_invariant": row(_SERVERS),
}
