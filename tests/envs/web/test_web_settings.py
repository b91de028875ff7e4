"""The configurations of web pages: they compose, and what they name is known."""

from __future__ import annotations

from pathlib import Path

import pytest

from envs.web.kinds.table import KINDS
from rlanything.config import parse
from rlanything.planning import compose
from rlanything.runs import families

ROOT = Path(__file__).parents[3]


def composed(env: str, scale: str, *more: str):
    return parse(compose.compose([f"env={env}", f"scale={scale}", *more], ROOT))


@pytest.mark.parametrize("env", ["web", "web_easy"])
@pytest.mark.parametrize("scale", ["smoke", "default"])
def test_the_settings_compose_and_the_family_takes_them(env, scale):
    config = composed(env, scale)
    family = families.family(config)
    families.check_splits(family, config.tasks)
    named = {*config.env["kinds"], *config.env["ood_kinds"]}
    assert named <= set(KINDS)
    assert config.rollout.decoding == "constrained"
    assert config.env["text"] == "compact"


def test_the_smoke_scale_has_the_easy_kinds():
    easy, smoke = composed("web_easy", "default"), composed("web", "smoke")
    assert easy.env == smoke.env
    assert composed("web_easy", "smoke") == smoke


def test_pages_for_a_language_model_are_plain():
    assert composed("web", "default", "env.text=plain").env["text"] == "plain"
