"""The section about endpoints: sums over iterations and seeds, and nothing where there are none."""

from __future__ import annotations

from pathlib import Path

from rlanything.config import parse
from rlanything.planning import compose
from rlanything.report import configuration, endpoints

ROOT = Path(__file__).parents[2]
ADAPTER = ("engine@endpoints.adapter=openai", "endpoints.adapter.model=m|1")
SERIES = {
    "replies": {0: 3.0, 1: 1.0},
    "prompt_tokens": {0: 100.0, 1: 1000.0},
    "reply_tokens": {0: 9.0},
    "empty": {0: 1.0},
}
RUN = {f"endpoint/adapter/{key}": series for key, series in SERIES.items()}


def test_the_tokens_of_all_seeds_are_added_and_an_unknown_cost_is_no_zero():
    config = parse(compose.compose(ADAPTER, ROOT))
    page = endpoints.section(config, {"full": {0: RUN, 1: RUN}, "outcome": {0: {}}})
    assert page.splitlines()[-1] == "| `full`, adapter, `m\\|1` | 8 | 2,200 | 18 | 2 | – |"
    priced = RUN | {"endpoint/adapter/cost": {0: 0.25, 1: 0.5}}
    assert endpoints.section(config, {"full": {0: priced}}).splitlines()[-1].endswith("| 0.75 |")


def test_without_endpoints_there_is_no_section():
    assert endpoints.section(parse(compose.compose((), ROOT)), {"full": {0: RUN}}) == ""


def test_the_settings_name_the_model_and_not_the_address():
    rows = {row.name: row.value for row in configuration.rows(parse(compose.compose(ADAPTER, ROOT)))}
    assert rows["endpoints.adapter.model"] == "m|1"
    assert not any("api.openai.com" in value for value in rows.values())
