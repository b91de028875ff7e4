"""What servers are told: the whole weights, a name for them, and each session always the same server."""

from __future__ import annotations

from dataclasses import replace

import engine_cases as cases
import pytest
import torch
from fake_vllm import Fake
from safetensors.torch import load_file
from served_cases import REQUESTS, listening

from rlanything.core.errors import MachineError, UserError
from rlanything.core.types import Request
from rlanything.engines.vllm.instance import Ask, save_config
from rlanything.engines.vllm.served.fleet import divide
from rlanything.engines.vllm.served.wire import LostError, read


@pytest.fixture(scope="module")
def model():
    return cases.qwen2()


@pytest.fixture
def folder(model, tmp_path):
    """A checkpoint that a server was started with."""
    save_config(model, tmp_path / "started")
    return tmp_path / "started"


def test_nothing_is_started_before_it_is_asked(opened, faults):
    engine = opened()
    engine.sync(3)
    only = Request((5, 6), 0, 4, choices=((7, 2),))
    assert [(c.ids, c.version) for c in engine.generate([only])] == [((7, 2), 3)]
    engine.close()
    assert not list(faults.parent.glob("pids-*"))


def test_a_closed_engine_says_so(opened):
    engine = opened()
    engine.close()
    engine.close()
    with pytest.raises(ValueError, match="the engine is closed"):
        engine.generate(REQUESTS)


def test_given_servers_get_the_whole_state_at_every_update(opened, model, folder, tmp_path):
    with listening(folder) as (address, fake):
        engine = opened(model, addresses=[address], folder=str(tmp_path))
        first = engine.generate(REQUESTS)
        (written,) = tmp_path.glob("rlanything-vllm-*")
        assert fake.loaded == [str(written)]
        assert written.stat().st_mode & 0o077 == 0
        state = load_file(written / "model.safetensors")
        assert state.keys() == model.state_dict().keys() >= {"lm_head.weight"}
        with torch.no_grad():
            model.model.embed_tokens.weight.mul_(1.5)
        engine.sync(1)
        state = load_file(written / "model.safetensors")
        assert torch.equal(state["lm_head.weight"], model.model.embed_tokens.weight)
        assert len(fake.loaded) == 2
        second = engine.generate(REQUESTS)
        assert [c.ids for c in first] == [c.ids for c in second]  # the fake's do not depend on weights
        assert ({c.version for c in first}, {c.version for c in second}) == ({0}, {1})
        names = list(dict.fromkeys(fake.salts))
        assert (len(names), names[-1]) == (2, fake.version)
        engine.close()
        assert not list(tmp_path.glob("rlanything-vllm-*"))


def test_weights_that_nothing_trains_are_given_once_under_every_version(opened, model, folder):
    with listening(folder) as (address, fake):
        engine = opened(model, addresses=[address])
        engine.rename(4)
        assert {c.version for c in engine.generate(REQUESTS)} == {4}
        engine.rename(5)
        assert {c.version for c in engine.generate(REQUESTS)} == {5}
        assert (len(fake.loaded), len(set(fake.salts))) == (1, 1)
        engine.sync(6)
        assert len(fake.loaded) == 2


def test_weights_that_are_being_loaded_have_no_name_that_is_asked_for(opened, model, folder):
    with listening(folder) as (address, fake):
        engine = opened(model, addresses=[address])
        for version in range(2):
            engine.sync(version)
            engine.generate(REQUESTS)
            assert fake.meanwhile[version] == f"loading {fake.version}"
        assert not set(fake.meanwhile) & set(fake.salts)


def test_one_name_for_two_states_is_two_names_for_a_server(opened, model, folder):
    with listening(folder) as (address, fake):
        engine = opened(model, addresses=[address])
        for _ in range(2):
            engine.sync(5)
            engine.generate(REQUESTS)
        assert len(set(fake.salts)) == 2


def test_a_given_server_that_began_anew_gets_the_weights_again(opened, model, folder, capfd):
    with listening(folder) as (address, fake):
        engine = opened(model, addresses=[address])
        expected = engine.generate(REQUESTS)
        fake.version, before = "default", set(fake.salts)
        assert engine.generate(REQUESTS) == expected
        assert len(fake.loaded) == 2
        assert fake.salts[-1] not in before  # it has cached prefixes under the old name, with other weights
        assert (
            f"the server at {address} was lost: 'default' are the weights that sampled"
            in capfd.readouterr().err
        )


def test_servers_sample_with_the_weights_alone_that_they_were_given(opened, model, folder):
    with listening(folder) as (address, fake):
        engine = opened(model, addresses=[address])
        fleet = engine._start()
        with pytest.raises(MachineError, match="the servers have no weights, and 'others' must sample"):
            fleet.generate([ASK], "others")
        fleet.close()
        engine.generate(REQUESTS)
        asked = len(fake.asked)
        with pytest.raises(MachineError, match=r"the servers have 'weights 1 of \w+', and 'others' must"):
            engine._instance.generate([ASK], "others")
        assert len(fake.asked) == asked


def test_a_given_server_that_is_gone_ends_the_run(opened, model, folder):
    with listening(folder) as (address, _):
        engine = opened(model, addresses=[address], start_s=0.5)
        engine.generate(REQUESTS)
    with pytest.raises(MachineError, match=rf"the server at {address} was not up after 0\.5 s .*Connect"):
        engine.generate(REQUESTS)


def test_models_take_servers_of_their_architecture_which_nobody_has(opened, model, folder, tmp_path):
    other = cases.qwen2(kv_heads=4)
    save_config(other, tmp_path / "other")
    with (
        listening(folder) as (one, _),
        listening(folder) as (two, _),
        listening(tmp_path / "other") as (three, _),
        listening(folder) as (fourth, _),
    ):
        given = [three, one, two]
        engines = [opened(made, addresses=given) for made in (model, model, other)]
        for engine in engines:
            engine.generate(REQUESTS)
        assert [[s.address for s in engine._instance._servers] for engine in engines] == [
            [one],
            [two],
            [three],
        ]
        with pytest.raises(ValueError, match="another model of this run has it"):
            opened(model, addresses=given).generate(REQUESTS)
        engines[0].close()
        assert opened(model, addresses=given).generate(REQUESTS)
        with pytest.raises(ValueError, match=r"another num_key_value_heads \(2, not 1\)"):
            opened(cases.qwen2(kv_heads=1), addresses=[fourth]).generate(REQUESTS)


def test_a_server_that_does_not_fit_says_why(opened, model, folder, tmp_path):
    nowhere = pytest.raises(ValueError, match="is no folder that can be read here")
    with listening(tmp_path / "nowhere") as (address, _), nowhere:
        opened(model, addresses=[address]).generate(REQUESTS)
    with pytest.raises(ValueError, match=r"0 servers for a model that needs 1\. .*no server of vLLM answers"):
        opened(model, addresses=[address]).generate(REQUESTS)
    with listening(folder) as (address, _):
        model = cases.qwen2()
        model.config.max_position_embeddings = 256
        with pytest.raises(ValueError, match=r"its context has 512 tokens, not 256 \(--max-model-len\)"):
            opened(model, addresses=[address]).generate(REQUESTS)


def test_a_server_with_a_name_that_no_machine_can_have_does_not_answer(opened, model):
    with pytest.raises(UserError, match=r"http://a\.\.b:8001: no server of vLLM answers"):
        opened(model, addresses=["http://a..b:8001"]).generate(REQUESTS)


def test_a_folder_that_cannot_be_written_is_named(opened, model, tmp_path):
    engine = opened(model, folder=str(tmp_path / "missing"))
    with pytest.raises(ValueError, match=r"engine\.folder = .*missing: cannot be written \(No such file"):
        engine.generate(REQUESTS)


def test_a_session_stays_at_one_of_several_servers(opened, model, folder):
    with listening(folder) as (one, first), listening(folder) as (two, second):
        engine = opened(model, addresses=[one, two], replicas=2)
        requests = [Request((5, 6, seed + 9), seed, 3, session=f"{seed % 8}") for seed in range(40)]
        found = engine.generate(requests)
        later = [
            replace(r, prompt_ids=(*r.prompt_ids, *c.ids, 9)) for r, c in zip(requests, found, strict=True)
        ]
        engine.generate(later)
        where = [{tuple(ids) for ids in fake.asked} for fake in (first, second)]
        assert all(where)
        for before, after in zip(requests, later, strict=True):
            assert (before.prompt_ids in where[0]) == (after.prompt_ids in where[0])
            assert (before.prompt_ids in where[0]) != (before.prompt_ids in where[1])
    assert opened(model).generate(requests) == found  # one server gives the same


def test_questions_are_divided_by_session():
    asked = [Ask((k,), 1, (), {}, session="a" if k % 2 else "") for k in range(20)]
    parts = divide(asked, 3)
    assert sorted(k for part in parts for k in part) == list(range(20))
    assert len([part for part in parts if any(one.session for one in part.values())]) == 1
    assert divide([], 2) == [{}, {}]


ASK = Ask((5, 6), 3, (), {"seed": 0})


def answer() -> dict:
    return {**Fake.answer(Fake.__new__(Fake), {"token_ids": [5], "sampling_params": {"max_tokens": 3}}, 0)}


def test_an_answer_is_read(monkeypatch):
    monkeypatch.setattr(Fake, "version", "w", raising=False)
    found = answer()
    ids, logprobs = read(found, ASK, "w")
    assert len(ids) == 3
    assert logprobs == [-token / 1000 for token in ids]
    found["choices"][0]["logprobs"]["content"][1]["logprob"] = -9999.0  # what vLLM sends for NaN
    assert [value == value for value in read(found, ASK, "w")[1]] == [True, False, True]


@pytest.mark.parametrize(
    "change",
    [
        lambda choice: choice.update(token_ids=[]),
        lambda choice: choice.update(token_ids=[3, 4, -1]),
        lambda choice: choice.update(token_ids=[3, "4", 5]),
        lambda choice: choice.update(token_ids=[1] * 4),
        lambda choice: choice.update(token_ids=None),
        lambda choice: choice.update(token_ids=5),
        lambda choice: choice.update(weight_versions=None),
        lambda choice: choice.update(weight_versions=[]),
        lambda choice: choice["weight_versions"].insert(0, {"version": "v", "start": 0, "end": 1}),
        lambda choice: choice["weight_versions"][0].update(end=2),
        lambda choice: choice.update(logprobs=None),
        lambda choice: choice["logprobs"]["content"][0].update(token_id=5),
        lambda choice: choice["logprobs"]["content"][0].update(logprob=None),
        lambda choice: choice["logprobs"]["content"][0].update(logprob=10**400),
    ],
)
def test_an_answer_that_does_not_hold_together_is_lost(change, monkeypatch):
    monkeypatch.setattr(Fake, "version", "w", raising=False)
    found = answer()
    change(found["choices"][0])
    with pytest.raises(LostError):
        read(found, ASK, "w")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"replicas": 0}, "replicas = 0: must be a whole number of at least 1"),
        ({"restarts": -1}, "restarts = -1: must be a whole number of at least 0"),
        ({"start_s": 0}, "start_s = 0: must be a number of seconds above 0"),
        ({"request_s": "long"}, "request_s = 'long': must be a number of seconds"),
        ({"addresses": "http://a:1"}, r"must be a list, such as \[http://a:1\]"),
        ({"addresses": ["a:1"]}, "'a:1' must have the form http://HOST:PORT"),
        ({"addresses": ["http://a"]}, "must have the form"),
        ({"addresses": ["http://a:99999"]}, "must have the form"),
        ({"addresses": ["http://u:p@a:1"]}, "must have the form"),
        ({"addresses": ["http://:p@a:1"]}, "must have the form"),
        ({"addresses": ["http://a:1#b"]}, "must have the form"),
        ({"addresses": None}, r"addresses = None: must be a list, such as \[http://HOST:PORT\]"),
        ({"folder": 5}, "folder = 5: must begin with /"),
        ({"addresses": ["http://a:1", "http://a:1"]}, "one is given twice"),
        ({"addresses": ["http://a:1", "http://A:1/"]}, "one is given twice"),
        ({"addresses": ["http://a:1"], "replicas": 2}, "1 of them, for replicas = 2"),
        ({"folder": "weights"}, "folder = 'weights': must begin with /"),
        ({"addresses": ["ray://a:1"]}, "folder = None: Ray places servers on any node .* all nodes see"),
        (
            {"addresses": ["ray://a:1", "http://a:1"]},
            "a cluster, ray://HOST:PORT, must be the only one, got 2",
        ),
        ({"addresses": ["ray://a"], "folder": "/w"}, "must have the form ray://HOST:PORT"),
        ({"cache_gib": 0.0001}, r"engine\.cache_gib = 0\.0001: it needs .* allowed: at least 0\.001"),
        ({"context": 0}, "context = 0: must be a whole number of at least 1, or null"),
        ({"context": True}, "context = True: must be a whole number"),
        ({"max_batched_tokens": 8}, "max_batched_tokens must be at least max_batch"),
        ({"max_batched_tokens": 8192.5}, "max_batched_tokens = 8192.5: must be a whole number"),
        ({"dtype": 5}, "dtype = 5: unknown; known: auto, bfloat16, float32"),
        ({"tolerance": True}, "tolerance = True: must be a number, or null"),
    ],
)
def test_values_that_are_not_allowed(opened, model, arguments, words):
    with pytest.raises(ValueError, match=words):
        opened(model, **arguments)
