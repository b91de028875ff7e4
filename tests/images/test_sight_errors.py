"""What cannot see, or cannot be seen, is refused with the reason, and before a forward pass."""

from __future__ import annotations

import json
import shutil
import zlib

import pytest
from image_cases import SIGNATURE, chunk, header
from sight_cases import NAMES, PICTURES, TEXTS, folder, loaded, prompt

from rlanything.core.errors import ConfigError, MachineError
from rlanything.core.images import Image
from rlanything.core.types import Judgement, Request, ScoredReplies, Vote
from rlanything.engines import checkpoint
from rlanything.engines.native import NativeEngine
from rlanything.engines.sight import eyes as sight
from rlanything.engines.transformers import TransformersEngine
from rlanything.learn.losses import pack
from rlanything.learn.packing import reward_rows
from rlanything.rehearsal.architectures import architecture

KIND = "qwen2_5_vl"
REQUEST = Request((5, 6, 7), 1, 4, images=(NAMES[0],))


@pytest.fixture(scope="module")
def text_only():
    made = architecture("qwen2")
    tokenizer = made.tokenizer(TEXTS)
    return made.fresh(tokenizer, 1), tokenizer


@pytest.mark.parametrize("engine", [TransformersEngine, NativeEngine])
def test_an_engine_that_reads_text_alone_refuses_pictures(text_only, engine):
    with pytest.raises(
        ValueError,
        match=r"shows 1 pictures, and this engine reads text alone; pictures need engine=transformers",
    ):
        engine(*text_only).generate([REQUEST])


def test_a_checkpoint_that_reads_text_alone_is_refused_when_it_is_loaded(text_only, tmp_path):
    checkpoint.save(*text_only, tmp_path / "model")
    with pytest.raises(ConfigError, match="Qwen2ForCausalLM reads text alone, and is to be shown pictures"):
        sight.load(str(tmp_path / "model"), None, text_only[0], PICTURES.__getitem__)


def test_rows_with_pictures_need_eyes():
    vote = Vote(1, "", (3, 4), (-1.0, -1.0))
    (row,) = reward_rows(
        ScoredReplies((Judgement((5, 6), (vote,), (NAMES[0],)),), ((1.0,),), (1.0,)), "token"
    )
    with pytest.raises(ValueError, match="a row shows pictures, and its model reads text alone"):
        pack([row])


@pytest.fixture
def copied(tmp_path):
    """A checkpoint whose preprocessor_config.json can be changed."""
    place = tmp_path / "copy"
    shutil.copytree(folder(KIND), place)

    def changed(**values):
        file = place / "preprocessor_config.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), **values}))
        return sight.load(str(place), None, loaded(KIND)[0], PICTURES.__getitem__)

    changed.folder = place
    return changed


def test_an_image_processor_of_another_model_is_refused(copied):
    with pytest.raises(ConfigError, match=r"has patch_size = 16, and the model patch_size = 14"):
        copied(patch_size=16)


@pytest.mark.parametrize("content", ["{", "[]", None])
def test_an_image_processor_that_cannot_be_read_is_refused_with_its_folder(copied, content):
    file = copied.folder / "preprocessor_config.json"
    file.unlink()
    if content:
        file.write_text(content)
    with pytest.raises(ConfigError, match=f"{copied.folder}: its image processor cannot be loaded"):
        sight.load(str(copied.folder), None, loaded(KIND)[0], PICTURES.__getitem__)


def test_a_processor_that_blows_pictures_up_is_stopped_before_it_does(copied):
    with pytest.raises(ConfigError, match=r"takes [\d,]+ tokens; from 1 to 16,384 are allowed"):
        copied(size={"shortest_edge": 10**11, "longest_edge": 10**12})
    eyes = copied(size={"shortest_edge": 784, "longest_edge": 10**12})
    with pytest.raises(ConfigError, match="allowed"):
        eyes.tokens(8000, 8000)
    wide = Image(SIGNATURE + header(8000, 2000) + chunk(b"IDAT", b"") + chunk(b"IEND", b""))
    with pytest.raises(ConfigError, match="allowed"):
        eyes.knowing(wide).pixels([wide.sha256])


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (
            {"size": {"shortest_edge": "a", "longest_edge": "b"}},
            "a picture of 64 x 64 pixels cannot be shown",
        ),
        ({"size": {"shortest_edge": 0, "longest_edge": 0}}, "cannot be shown: division by zero"),
        ({"do_resize": False}, "its image processor reads no picture"),
        ({"rescale_factor": "x"}, "its image processor reads no picture"),
        ({"image_std": [0, 0, 0]}, r"makes pixels that no model can read \(16 patches for 4 tokens\)"),
        ({"temporal_patch_size": 3}, "has temporal_patch_size = 3, and the model temporal_patch_size = 2"),
        ({"image_processor_type": "CLIPImageProcessor"}, "get_number_of_image_patches"),
    ],
)
def test_a_processor_that_reads_no_picture_is_refused_when_it_is_loaded(copied, values, told):
    with pytest.raises(ConfigError, match=told):
        copied(**values)


def test_a_picture_that_is_too_narrow_is_refused_with_its_size():
    with pytest.raises(
        ConfigError, match="a picture of 4000 x 10 pixels cannot be shown: absolute aspect ratio"
    ):
        loaded(KIND)[2].tokens(4000, 10)


WHOLE = zlib.compress(b"\0" * (30 * (3 * 30 + 1)))


@pytest.mark.parametrize(
    ("pixels", "between"),
    [(zlib.compress(b"\0" * 5)[:-3], b""), (WHOLE, chunk(b"iCCP", b"")), (WHOLE, chunk(b"gAMA", b""))],
)
def test_pixels_that_cannot_be_unpacked_are_an_error_that_names_the_picture(pixels, between):
    """Its chunks fit their checksums, so only unpacking can tell."""
    image = Image(SIGNATURE + header(30, 30) + chunk(b"IDAT", pixels) + between + chunk(b"IEND", b""))
    model = loaded(KIND)[0]
    eyes = sight.load(str(folder(KIND)), None, model, {image.sha256: image}.__getitem__)
    with pytest.raises(MachineError, match=f"picture {image.sha256}: it cannot be decoded"):
        eyes.pixels([image.sha256])


def test_a_checkpoint_keeps_its_eyes_when_it_is_saved(tmp_path):
    model, tokenizer, eyes = loaded(KIND)
    checkpoint.save(model, tokenizer, tmp_path)
    eyes.save(tmp_path)
    again, words = checkpoint.load(tmp_path)
    seen = sight.load(str(tmp_path), None, again, PICTURES.__getitem__)
    assert (seen.pixels([NAMES[0]])[0] == eyes.pixels([NAMES[0]])[0]).all()
    request = Request(prompt(KIND, NAMES[0]), 1, 4, images=(NAMES[0],))
    one, two = (
        TransformersEngine(m, t, eyes=e) for m, t, e in ((model, tokenizer, eyes), (again, words, seen))
    )
    assert one.generate([request]) == two.generate([request])
