"""Seeds and content ids: the same on every machine, different for different names."""

from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlanything.core.ids import canonical_json, content_id
from rlanything.core.seeds import derive_seed

PART = st.one_of(st.integers(), st.text(max_size=6))
JSON = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(), inner, max_size=3)),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("args", "golden"),
    [
        ((0, "act"), 6880458039095339164),
        ((1, "judge", 3, "task", 0, -1), 7007461293128996835),
        ((123456789, "adapt", "ü"), 2212433223408877787),
    ],
)
def test_seeds_are_the_golden_values(args, golden):
    assert derive_seed(*args) == golden


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("1", 1), (1, "1")),
        ((1,), ("1",)),
        (("ab", "c"), ("a", "bc")),
        (("a", ""), ("", "a")),
        ((), ("",)),
        ((1, 2), (12,)),
        ((True,), (1,)),
    ],
)
def test_parts_are_typed_and_length_prefixed(one, other):
    assert derive_seed(0, "act", *one) != derive_seed(0, "act", *other)


@given(st.lists(PART, max_size=4), st.lists(PART, max_size=4))
def test_seeds_are_equal_exactly_when_all_parts_are(one, other):
    same = derive_seed(5, "p", *one) == derive_seed(5, "p", *other)
    assert same == (one == other)


@given(st.integers(), st.text(), st.lists(PART, max_size=3))
def test_seeds_fit_a_signed_64_bit_integer(run_seed, phase, parts):
    assert 0 <= derive_seed(run_seed, phase, *parts) < 2**63


def test_run_seed_and_phase_both_matter():
    assert len({derive_seed(s, p, 1) for s in range(20) for p in ("act", "judge")}) == 40


def test_canonical_json_has_sorted_keys_no_spaces_and_keeps_letters():
    assert canonical_json({"b": [1, 2.5, None], "a": {"ü": "ß"}}) == '{"a":{"ü":"ß"},"b":[1,2.5,null]}'


def test_content_id_is_the_sha256_of_the_canonical_bytes():
    assert content_id({"b": 1, "a": "ü"}) == hashlib.sha256('{"a":"ü","b":1}'.encode()).hexdigest()


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_numbers_that_json_has_not_are_refused_at_any_depth(bad):
    with pytest.raises(ValueError, match="not JSON compliant"):
        content_id({"a": [1, {"b": bad}]})


def shuffled(value, random):
    if isinstance(value, dict):
        items = list(value.items())
        random.shuffle(items)
        return {k: shuffled(v, random) for k, v in items}
    return [shuffled(v, random) for v in value] if isinstance(value, list) else value


@given(st.dictionaries(st.text(alphabet="abcé", max_size=3), JSON), st.randoms())
def test_canonical_json_ignores_the_order_of_keys_and_reads_back(value, random):
    text = canonical_json(value)
    assert canonical_json(shuffled(value, random)) == text
    assert json.loads(text) == value
