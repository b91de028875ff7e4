"""A Parquet file whose computed columns do not follow from its tasks is refused; an honest one never is."""

import hashlib
import json

import polars as pl
import pytest
from buffer_cases import command, kitchen, relaxed, task, write_house
from hypothesis import example, given
from hypothesis import strategies as st

from rlanything.buffer import Lineage, TaskBuffer, TaskBufferError, Version
from rlanything.buffer.views import export
from rlanything.buffer.views.columns import derived, kinds, shapes
from rlanything.buffer.views.columns.derived import require_derived
from rlanything.buffer.views.columns.parquet import read_parquet, read_table, write_parquet
from rlanything.buffer.views.columns.table import kind_frame
from rlanything.buffer.views.tasks.task_fields import fields_of, scalar_fields
from rlanything.core.ids import canonical_json
from rlanything.core.types import Task
from rlanything.files import reader
from rlanything.files.reader import parse

HEADS = pl.col("head")
OBJECT = "kind.goal.object"


@pytest.fixture
def honest(tmp_path, monkeypatch):
    """Twelve slots; slots 0 and 3 have a second version."""
    write_house(tmp_path)
    monkeypatch.chdir(tmp_path)
    export("full/seed-0", tmp_path / "out.parquet")
    return tmp_path / "out.parquet"


def forged(path, *columns, header=(), drop=()):
    """The file with other columns, everything else and its header as they were."""
    kept = pl.read_parquet_metadata(path) | dict(header)
    frame = pl.read_parquet(path).with_columns(*columns).drop(*drop)
    frame.write_parquet(path, metadata={key: text for key, text in kept.items() if key != "ARROW:schema"})


def require(path):
    require_derived(path, pl.read_parquet_metadata(path))


def in_row(slot, number, column, value):
    here = (pl.col("slot") == slot) & (pl.col("number") == number)
    return pl.when(here).then(value).otherwise(pl.col(column)).alias(column)


LIES = {
    "key": (in_row(3, 1, "key", pl.lit(77)), "slot 3, v1: column 'key' says 77, but it must be the first 15 digits"),
    "no key": (in_row(3, 0, "key", pl.lit(None)), "slot 3, v0: column 'key' says None"),
    "kind": (in_row(2, 0, OBJECT, pl.lit("gold")), "slot 2, v0: column 'kind.goal.object' says 'gold', but 'knife'"),
    "a version's kind": (in_row(3, 0, OBJECT, pl.lit("mug")), "slot 3, v0: column 'kind.goal.object' says 'mug', but"),
    "no kind": (in_row(2, 0, OBJECT, pl.lit(None)), "slot 2, v0: column 'kind.goal.object' says None, but 'knife'"),
    "two heads": (in_row(3, 0, "head", pl.lit(True)), "slot 3, v0: column 'head' says True, but False"),
    "number": (in_row(3, 1, "number", pl.lit(2)), "slot 3, v2: column 'number' says 2, but 1 follows"),
    "measured": (in_row(1, 0, "measured", pl.lit(7.0)), "slot 1, v0: column 'measured' says 7.0, but it must lie in"),
    "nan": (in_row(1, 0, "measured", pl.lit(float("nan"))), "slot 1, v0: column 'measured' says nan"),
    "a version's measured": (in_row(3, 0, "measured", pl.lit(0.5)), "slot 3, v0: column 'measured' says 0.5, but only"),
    "a version's tries": (in_row(3, 0, "tried", pl.lit(["0" * 64])), "slot 3, v0: column 'tried' says ['000"),
    "tries twice": (in_row(2, 0, "tried", pl.lit(["0" * 64] * 2)), "slot 2, v0: column 'tried' says ['000"),
    "a try": (in_row(2, 0, "tried", pl.lit(["mug"])), "slot 2, v0: column 'tried' says ['mug'], but it must be"),
    "direction": (in_row(3, 1, "direction", pl.lit("up")), "slot 3, v1: column 'direction' says 'up', but it"),
    "iteration": (in_row(3, 0, "iteration", pl.lit(9)), "slot 3, v1: column 'iteration' says 1, but the version"),
    "slot": (in_row(11, 0, "slot", pl.lit(5)), "its rows are not sorted by slot"),
    "payload": (in_row(3, 0, "payload", pl.lit("[]")), "slot 3, v0: column 'payload' says '[]', but it must"),
    "metadata": (in_row(3, 1, "metadata", pl.lit("{")), "slot 3, v1: column 'metadata' says '{', but not JSON"),
    "type": (pl.col("key").cast(pl.Float64), "column 'key' must hold Int64, it holds Float64"),
    "extra": (pl.when(HEADS).then(pl.lit("x")).alias("kind.smell"), "slot 0, v1: column 'kind.smell' says 'x'"),
    "empty extra": (pl.when(HEADS).then(pl.lit("-")).alias("kind.smell"), "there is a column 'kind.smell'"),
}  # fmt: skip


@pytest.mark.parametrize("lie", LIES)
def test_a_column_that_does_not_follow_is_named_with_its_row(honest, lie):
    column, message = LIES[lie]
    require(honest)
    forged(honest, column)
    with pytest.raises(TaskBufferError) as raised:
        require(honest)
    assert str(raised.value).startswith(message)


@pytest.mark.parametrize("lie", [OBJECT, "key", "head"])
def test_neither_diff_nor_import_believes_an_honest_core_with_lying_columns(honest, capsys, lie):
    other = {
        OBJECT: pl.when(HEADS).then(pl.lit("gold")).alias(OBJECT),
        "key": pl.col("key") ^ 1,
        "head": ~HEADS,
    }
    forged(honest, other[lie])
    for words in (["diff", "out.parquet", "full/seed-0", "--stat"], ["import", "out.parquet", "runs/new"]):
        assert command(*words) == 2
        said = capsys.readouterr().err
        assert "out.parquet: slot 0, v" in said
        assert f"column '{lie}' says" in said or lie == "head"


@pytest.mark.parametrize("change", [{"drop": [OBJECT]}, {"drop": ["key"]}])
def test_a_column_that_is_missing_is_named(honest, change):
    forged(honest, **change)
    with pytest.raises(TaskBufferError, match=f"column '{change['drop'][0]}' is missing"):
        require(honest)


@pytest.mark.parametrize(
    ("name", "message"), [("slots", "7 slots, the file has 12"), ("accepted", "7 accepted, the file has 2")]
)
def test_the_counts_of_the_header_follow_from_the_rows(honest, name, message):
    forged(honest, header={name: "7"})
    with pytest.raises(TaskBufferError, match=f"the header says {message}"):
        require(honest)


def test_a_comparison_checks_the_ids_of_all_versions(honest):
    """The key follows from the id, so a forger changes both."""
    old = "a" * 64
    forged(honest, in_row(3, 0, "task_id", pl.lit(old)), in_row(3, 0, "key", pl.lit(int(old[:15], 16))))
    right = kitchen(3, "mug", "fridge").task_id
    message = f"out.parquet: slot 3, v0: column 'task_id' says '{old}', but {right} follows from env"
    with pytest.raises(TaskBufferError, match=message):
        read_table(honest)


def test_an_id_of_another_spelling_of_the_same_payload_is_no_id(honest):
    """JSON of the same value with a blank in it: the file is read, but only with the id of its canonical form."""
    spaced = pl.col("payload").str.replace(":", ": ", literal=True)
    forged(honest, spaced)
    require(honest)
    row = pl.read_parquet(honest).row(0, named=True)
    text = f'{{"env":"{row["env"]}","instruction":"{row["instruction"]}","payload":{row["payload"]}}}'
    lying = hashlib.sha256(text.encode()).hexdigest()
    forged(honest, in_row(0, 0, "task_id", pl.lit(lying)), in_row(0, 0, "key", pl.lit(int(lying[:15], 16))))
    with pytest.raises(TaskBufferError, match="slot 0, v0: column 'task_id' says"):
        require(honest)


def test_a_file_is_read_in_parts_of_rows_and_of_bytes(honest, monkeypatch):
    monkeypatch.setattr(derived, "_ROWS", 5)
    monkeypatch.setattr(derived, "_BYTES", 300)
    require(honest)
    forged(honest, in_row(9, 0, OBJECT, pl.lit("gold")))
    with pytest.raises(
        TaskBufferError, match=r"slot 9, v0: column 'kind\.goal\.object' says 'gold', but 'mug'"
    ):
        require(honest)


def test_a_task_larger_than_the_limit_is_refused_also_where_no_other_is(honest, monkeypatch):
    forged(honest, in_row(3, 1, "metadata", pl.lit('{"a":"' + "x" * 2_000_000 + '"}')))
    require(honest)
    monkeypatch.setattr(reader.require_fits, "__defaults__", (1,))  # megabytes
    with pytest.raises(TaskBufferError, match=r"out\.parquet: it holds more than 1 MB; RLANYTHING_MOST_MB"):
        read_table(honest)


def test_too_many_different_fields_are_refused(honest, monkeypatch):
    monkeypatch.setattr(kinds, "_MOST_FIELDS", 3)
    with pytest.raises(TaskBufferError, match="more than 3 different fields"):
        require(honest)


strange = st.sampled_from(
    [
        "",
        "a",
        "a:b",
        'q"',
        "back\\",
        "\n",
        "\x00",
        "\x7f",
        "é",
        "\u2028",
        "\ud800",
        "null",
        ':"',
        '","',
        "a.b",
        "1",
        "-",
    ]
)
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-3, 3)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(
        [0.0, -0.0, 0.5, 0.0001, 0.00001, 1e15, 1e16, 1.0, 123456.75, 0.1 + 0.2, 10**18, 10**17]
    )
    | strange
    | st.text(max_size=5)
)
trees = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(strange | st.text(max_size=3), inner, max_size=3)
        | st.lists(st.lists(strange, min_size=2, max_size=2), max_size=2)
    ),
    max_leaves=8,
)
objects = st.dictionaries(strange | st.sampled_from("abc"), trees, max_size=4)


def alike(value):
    """Another object of the same form: some of its texts and numbers are others."""
    if isinstance(value, dict):
        return {key: alike(item) for key, item in value.items()}
    return (
        "zz" if value == "a" else value + 1.5 if type(value) in (int, float) and abs(value) < 1e9 else value
    )


@relaxed
@given(objects)
def test_the_values_of_a_text_are_where_its_shape_says(value):
    text = canonical_json(value)
    shape = shapes.shapes(pl.Series([text]))
    if not shapes.is_clean(shape[0]):
        return
    found = [shapes.parsed_value(each) for each in shapes.values(pl.Series([text]))[0]]
    numbers = iter(range(len(found)))
    put = {
        path: found[item.place] if isinstance(item, shapes.Value) else item
        for path, item in fields_of(shapes.marked(shape[0], numbers), {}).items()
    }
    assert list(numbers) == []
    assert repr(put) == repr(fields_of(parse(text.encode()), {}))


@pytest.mark.parametrize(
    "text",
    [
        '{"a":-0}', '{"a":00}', '{"a":1.50}', '{"a":1e5}', '{"a":--1}', '{"a":0.00001}', '{"a":1.0e1}', '{"a":+1}',
        '{"a":100000000.5}', '{"a":1234567890123456789.5}', '{"a":truefalse}', '{"a":nul}', '{"a":1 }', '{"a": 1}',
        '{"b":1,"a":2}', '{"a":1,"a":2}', '{"a":"\\u0041"}', '{"a":"\\/"}', '{"a":"\x01"}', '{"a":NaN}', '{"a":"b":1}',
        '{"a":1,}', '{"a":1', '{"a":"x}', '{"a:1":2}', '{"a":"b:1"}', '{"a":["b:1"]}', "[]", "1", "", '{"a":Infinity}',
        '{"\\u0061":1}', '{"a":1}{"b":2}', '{"a":"""}', '{"a":1"b":2}', '{"a":[1,2],"b":["",":1"]}',
    ],
)  # fmt: skip
def test_a_text_that_is_not_canonical_or_not_plain_has_no_clean_shape(text):
    assert not shapes.is_clean(shapes.shapes(pl.Series([text]))[0])


@pytest.mark.parametrize(
    "text",
    [
        "{}", '{"a":1}', '{"a":-1.5,"b":0.25,"c":0}', '{"a":"","b":null,"c":true}', '{"a":[1,"x",null,{"b":7}]}',
        '{"a":[["in","out"]],"b":"\x7f\u2028é"}', '{"":{"":""}}', '{"a":0.0001}',
        '{"a":-0.0}', '{"a":999999999999999999}',
        '{"a":["tab\\t"]}', '{"a":1e-05}', '{"a":"line\\n"}',
    ],
)  # fmt: skip
def test_canonical_text_has_the_shape_of_what_it_says(text):
    shape = shapes.shapes(pl.Series([text]))[0]
    assert canonical_json(json.loads(text)) == text
    assert shapes.is_clean(shape) == ("e-05" not in text)


pieces = st.sampled_from(
    [*'{}[]:,"\\ 0159-.e\n', "true", "null", "NaN", '":', ',"', ':"', "1.5", "\\u00", "00", '"a":1']
)


def is_canonical(text):
    try:
        return canonical_json(parse(text.encode())) == text
    except ValueError:
        return False


@relaxed
@given(objects, st.lists(st.tuples(st.integers(0, 80), st.integers(0, 3), pieces), min_size=1, max_size=3))
@example({"a": 15}, [(6, 1, "0")])  # 10
@example({"a": 15}, [(5, 1, "0")])  # 05
@example({"a": 0.15}, [(8, 1, "00")])  # 0.100
@example({"a": "bcd"}, [(7, 1, ':"c"')])  # {"a":"b:"c"d"}
def test_a_damaged_text_with_a_clean_shape_is_canonical(value, damages):
    text = canonical_json(value)
    for place, gone, piece in damages:
        place %= len(text)
        text = text[:place] + piece + text[place + gone :]
    assert is_canonical(text) or not shapes.is_clean(shapes.shapes(pl.Series([text]))[0])


short = st.integers(-999, 999) | st.integers(-99, 99).map(lambda n: n / 4) | st.text("ab1é", max_size=4)
struck = st.tuples(st.integers(0, 80), st.sampled_from("0159"), st.sampled_from("abé"))


@relaxed
@given(st.dictionaries(st.sampled_from("abc"), short, min_size=1), st.lists(struck, min_size=1, max_size=3))
@example({"a": 15}, [(2, "0", "b")])  # 10
@example({"a": 15}, [(1, "0", "b")])  # 05
@example({"a": 0.25}, [(3, "0", "b")])  # 0.20
@example({"a": 0.25}, [(2, "0", "b"), (3, "0", "b")])  # 0.00
@example({"a": "bc"}, [(1, "0", "a")])
@example({"a": 1, "b": 2}, [(0, "0", "b")])  # the key "b" twice
def test_another_digit_or_letter_in_short_values_is_clean_exactly_where_it_is_canonical(value, damages):
    text = canonical_json(value)
    for place, digit, letter in damages:
        places = [at for at, sign in enumerate(text) if sign.isalnum()]
        at = places[place % len(places)]
        text = text[:at] + (digit if text[at].isdigit() else letter) + text[at + 1 :]
    clean = shapes.is_clean(shapes.shapes(pl.Series([text]))[0])
    if "." in text:  # not every canonical decimal is short: 10.05 has its last digit in the shape
        assert is_canonical(text) or not clean
    else:
        assert clean == is_canonical(text)


@st.composite
def buffers(draw):
    """Some tasks, most of them of one form."""
    forms = draw(st.lists(st.tuples(objects, objects), min_size=1, max_size=3))
    tasks = [Task("toy", f"do {n}", *forms[n % len(forms)]) for n in range(draw(st.integers(1, 6)))]
    payload, metadata = forms[0]
    many = [
        Task("toy", f"more {n}", payload, {**metadata, "n": n % 3})
        for n in range(draw(st.sampled_from([0, 25])))
    ]
    other = [Task("toy", f"other {n}", alike(payload), metadata) for n in range(len(many))]
    return TaskBuffer.start([*tasks, *many, *other])


@relaxed
@given(buffers(), st.data())
def test_an_honest_file_is_read_and_any_other_kind_is_found(tmp_path_factory, buffer, data):
    path = tmp_path_factory.mktemp("p") / "b.parquet"
    write_parquet(buffer, path)
    require(path)
    named = [name for name in pl.read_parquet_schema(path) if name.startswith("kind.")]
    assert [
        f"kind.{name}" for name in kind_frame([scalar_fields(x.head.task) for x in buffer.lineages]).columns
    ] == named
    if named:
        name, slot = data.draw(st.sampled_from(named)), data.draw(st.sampled_from(buffer.slots))
        forged(path, in_row(slot, 0, name, pl.lit("quite another")))
        with pytest.raises(TaskBufferError, match=f"slot {slot}, v0: column"):
            require(path)


def test_many_tasks_of_many_forms_are_read_as_they_were_written(tmp_path):
    """Coding problems have tests with line breaks; some tasks have fields that no other has."""
    tasks = [
        task(
            n,
            cases=[[f"in {n}\n", f'"{n}"'], ["x", "y"]][: 1 + n % 2],
            level="ab"[n % 2],
            **{f"only-{n}": n, "r": n / 7},
        )
        for n in range(50)
    ]
    versions = [
        (Version(0, old), Version(1, task(100 + n, 'say "hi"\t\\ to é'), 1, 0.25, 0.5))
        for n, old in enumerate(tasks)
    ]
    buffer = TaskBuffer(tuple(Lineage(n, both[: 1 + n % 2]) for n, both in enumerate(versions)))
    write_parquet(buffer, tmp_path / "b.parquet")
    assert read_parquet(tmp_path / "b.parquet") == buffer
    read_table(tmp_path / "b.parquet")
