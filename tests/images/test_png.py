"""A picture is a whole PNG within limits, and is found to be one without being decoded."""

from __future__ import annotations

import hashlib
import io
import pickle

import PIL.Image
import pytest
from hypothesis import given
from hypothesis import strategies as st
from image_cases import chunk, damaged, png

from rlanything.core.images import Image
from rlanything.core.types import Observation


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"])
def test_what_pillow_writes_is_a_picture_of_its_size(mode):
    file = io.BytesIO()
    PIL.Image.new(mode, (37, 21)).save(file, "PNG")
    image = Image(file.getvalue())
    assert (image.width, image.height) == (37, 21)
    assert image.sha256 == hashlib.sha256(image.png).hexdigest()


@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 7))
def test_a_picture_has_the_size_that_pillow_reads(width, height, shade):
    image = Image(png(width, height, shade))
    with PIL.Image.open(io.BytesIO(image.png)) as found:
        found.load()
        assert found.size == (image.width, image.height) == (width, height)


@pytest.mark.parametrize("name", damaged())
def test_what_is_no_whole_png_is_refused_with_what_is_wrong(name):
    data, words = damaged()[name]
    with pytest.raises(ValueError, match=words):
        Image(data)


def test_a_picture_has_as_many_chunks_as_are_allowed():
    good, end = png(), chunk(b"IEND", b"")
    most = good[: -len(end)] + chunk(b"teXt", b"") * ((1 << 14) - 3) + end
    assert Image(most).width == Image(good).width


@given(st.data())
def test_a_cut_or_changed_png_is_never_taken_for_another_picture(data):
    good = png(9, 5)
    place = data.draw(st.integers(0, len(good) - 1))
    if data.draw(st.booleans()):
        changed = good[:place]
    else:
        changed = good[:place] + bytes([good[place] ^ data.draw(st.integers(1, 255))]) + good[place + 1 :]
    with pytest.raises(ValueError, match=r"PNG|picture"):
        Image(changed)


def test_a_picture_crosses_to_another_process_as_it_is_and_is_shown_without_its_bytes():
    image = Image(png())
    assert pickle.loads(pickle.dumps(image)) == image
    assert "png" not in repr(image)
    assert Observation("a page", images=(image, Image(png(shade=1)))).image_names[0] == image.sha256
