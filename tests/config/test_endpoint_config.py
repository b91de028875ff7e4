"""The section `endpoints`: what is refused before any work, and that no message repeats a secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlanything.config import Config, parse
from rlanything.core.errors import ConfigError
from rlanything.planning import compose, dvcfile
from rlanything.planning.costs import devices, estimate, text
from rlanything.planning.costs.assumptions import Assumptions
from rlanything.runs.fingerprint import checkpoints, run_config

ROOT = Path(__file__).parents[2]
ADAPTER = ("engine@endpoints.adapter=openai", "endpoints.adapter.model=small-model")
REWARD = ("engine@endpoints.reward=openai", "endpoints.reward.model=judge-model")
FROZEN = ("~arm@arms.policy_reward", "arms.full.train_reward=false")
SECRET = "sk-abcdef-0123456789"


def config(*overrides: str) -> Config:
    return parse(compose.compose(overrides, ROOT))


def refusal(*overrides: str) -> str:
    with pytest.raises(ConfigError) as caught:
        config(*overrides)
    return str(caught.value)


def test_an_endpoint_is_put_in_its_place_and_names_the_proposer():
    found = config(*ADAPTER)
    assert found.endpoints.adapter is not None
    assert found.proposer == "small-model"
    assert config().proposer == "models/adapter"
    assert [source.path for source in checkpoints(found, "full")] == ["models/policy", "models/reward"]


def test_a_policy_behind_an_endpoint_is_refused():
    told = refusal("engine=openai")
    assert "engine = openai" in told
    engines = {file.stem for file in (ROOT / "experiments" / "engine").glob("*.yaml")}
    assert f"Allowed here: {', '.join(sorted(engines - {'openai'}))}." in told
    assert "engine@endpoints.reward=openai" in told


def test_a_reward_model_that_trains_is_refused_behind_an_endpoint():
    told = refusal(*REWARD)
    assert "endpoints.reward.model = 'judge-model': arms.policy_reward.train_reward = True" in told
    assert config(*REWARD, *FROZEN).endpoints.reward is not None


@pytest.mark.parametrize(
    ("override", "told"),
    [
        (f"endpoints.adapter.key_env={SECRET}", "key_env: must be the name of an environment variable"),
        (f"endpoints.adapter.base_url=https://user:{SECRET}@host/v1", "base_url: must hold no user"),
        (f"endpoints.adapter.base_url=https://host/v1?key\\={SECRET}", "base_url: must hold no user"),
        (f"+endpoints.adapter.api_key={SECRET}", "endpoints.adapter.api_key: unknown"),
        (f"+endpoints.adapter.extra.api_key={SECRET}", "extra.api_key: looks like a secret"),
        (
            f"+endpoints.adapter.extra.extra_headers={{Authorization: {SECRET}}}",
            "extra.Authorization: looks like a secret",
        ),
        (f"+endpoints.adapter.extra.tools=[{{api_key: {SECRET}}}]", "extra.api_key: looks like a secret"),
        ("endpoints.adapter.base_url=ftp://host", "must be an address"),
        ("endpoints.adapter.base_url=http://example.org/v1", "a key would travel unencrypted"),
        ("endpoints.adapter.base_url=HTTP://example.org/v1", "a key would travel unencrypted"),
        ('endpoints.adapter.base_url="https://example.org/v1?"', "base_url: must hold no user"),
        ("+endpoints.adapter.extra.seed=1", "extra.seed: the engine writes this field"),
        ("endpoints.adapter.backoff_s=90", "backoff_s = 90"),
        ("endpoints.adapter.input_price=1", "give both, or neither"),
        ("endpoints.adapter.attempts=0", "endpoints.adapter.attempts = 0"),
        ("+engine@endpoints.judges.strong=openai", "endpoints.judges.strong"),
        ("engine@endpoints.reward=native", "only the engine openai can stand here"),
    ],
)
def test_a_bad_value_is_refused_by_its_key_without_a_secret(override, told):
    found = refusal(*ADAPTER, override)
    assert told in found
    assert SECRET not in found


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:8000/v1/", "http://[::1]:8000/v1", "http://localhost/v1"]
)
def test_this_machine_may_be_asked_without_tls(address):
    found = config(*ADAPTER, f'endpoints.adapter.base_url="{address}"').endpoints.adapter
    assert found is not None
    assert found.root == address.rstrip("/")


def test_a_run_depends_on_what_decides_replies_and_on_nothing_else():
    plain, asked = run_config(config(), "full"), run_config(config(*ADAPTER), "full")
    assert "endpoints" not in plain
    assert asked["endpoints"]["adapter"]["model"] == "small-model"
    cheap = config(*ADAPTER, "endpoints.adapter.timeout_s=9", "endpoints.adapter.concurrency=1")
    assert run_config(cheap, "full") == asked
    assert run_config(config(*ADAPTER), "outcome") == run_config(config(), "outcome"), (
        "this arm does not adapt"
    )


def test_the_pipeline_depends_on_endpoints_only_where_there_are_some():
    assert "endpoint" not in dvcfile.text(config(), ROOT).replace("rlanything/config/endpoints.py", "")
    found = dvcfile.text(config(*ADAPTER), ROOT)
    assert "adapter_endpoint: endpoints.adapter" in found
    assert "${item.adapter_endpoint}" in found


def test_a_plan_counts_an_endpoints_tokens_in_full_and_prices_them():
    prices = ("endpoints.adapter.input_price=2", "endpoints.adapter.output_price=8")
    found = config("scale=smoke", *ADAPTER, *prices)
    sizes = estimate.model_sizes(found, ROOT)
    assert (sizes["adapter"].parameters, sizes["adapter"].positions) == (0, 32768)
    arm = estimate.estimate(found, "full", sizes, devices.device("H100"), 1, Assumptions())
    page = text.render(found, [arm], Assumptions())
    (line,) = [
        line.split() for line in page.partition("endpoints, at most")[2].splitlines() if "adapter" in line
    ]
    read, written, cost = (float(number.replace(",", "")) for number in line[2:])
    assert cost == pytest.approx((2 * read + 8 * written) / 1e6, abs=0.005)
    assert "endpoints, at most" not in text.render(config("scale=smoke"), [arm], Assumptions())
    assert "endpoints, expected" in text.render(found, [arm], Assumptions(reply_share=0.5))
