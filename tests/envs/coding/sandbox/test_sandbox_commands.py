"""The command line: what works here, how fast, and an image."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from public_folder import readable_by_all
from sandbox_cases import opened

from benchmarks.sandbox import TESTS, _fork_chunk, forked, jobs
from envs.coding.sandbox import Job, SandboxError, Stdio
from envs.coding.sandbox.backends.container import connect
from envs.coding.sandbox.backends.image import repository_and_version

ROOT = Path(__file__).parents[4]
NOBODY = 65534


def run(*arguments, python=sys.executable, module="envs.coding.sandbox", cwd=ROOT, **options):
    command = [python, "-m", module, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd, **options)


@pytest.mark.long
def test_check_says_what_works_and_why_the_rest_does_not(request, monkeypatch, tmp_path):
    opened(request, "bwrap").close()
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none")
    done = run("check", "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, list(found)) == (0, ["bwrap", "docker", "subprocess"])
    assert found["bwrap"]["works"]
    assert found["subprocess"]["works"]
    assert found["bwrap"]["probes"] > found["subprocess"]["probes"]
    assert "nothing answers as Docker" in found["docker"]["reason"]


@pytest.mark.long
def test_check_fails_where_nothing_isolates(tmp_path):
    done = run("check", env={"PATH": str(tmp_path), "DOCKER_HOST": f"unix://{tmp_path}/none"})
    assert done.returncode == 1
    assert "apt install bubblewrap" in done.stdout


@pytest.mark.long
def test_check_as_an_ordinary_user(public_sources):
    python = "/usr/bin/python3"
    if os.getuid() != 0:
        pytest.skip("root is needed to become another user; run this test as root")
    if shutil.which("bwrap") is None or not Path(python).exists():
        pytest.skip("missing: apt install bubblewrap python3")
    environment = {"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}
    who = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    done = run("check", "--json", python=python, env=environment, cwd=public_sources, **who)
    assert done.stderr == ""
    assert json.loads(done.stdout)["bwrap"] == {
        "works": True,
        "reason": "",
        **{key: json.loads(done.stdout)["bwrap"][key] for key in ("start_s", "probes")},
    }


def test_a_private_folder_is_recognised(public_sources, tmp_path):
    """The tests of ordinary users pass wherever the repository lies."""
    assert readable_by_all(public_sources / "envs" / "coding" / "sandbox" / "__main__.py")
    private = tmp_path / "private"
    (private / "inside").mkdir(parents=True)
    (private / "inside").chmod(0o755)
    private.chmod(0o700)
    assert not readable_by_all(private)
    assert not readable_by_all(private / "inside")


@pytest.mark.long
def test_check_of_containers(image):
    found = json.loads(run("check", "--json", "--image", image).stdout)
    assert found["docker"]["works"], found


@pytest.mark.long
@pytest.mark.parametrize("tag", ["localhost/rlanything-sandbox:made", "localhost/rlanything-unversioned"])
def test_an_image_is_made(image, tag):
    done = run("image", "--tag", tag)
    whole = tag if ":" in tag else f"{tag}:latest"
    assert (done.returncode, done.stdout) == (0, whole + "\n"), done.stderr
    client = connect()
    assert whole in client.images.get(tag).tags


@pytest.mark.long
def test_a_name_that_is_none_of_an_image_is_told(image):
    done = run("image", "--tag", "Foo Bar")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("'Foo Bar' is no name of an image: ")
    found = json.loads(run("check", "--json", "--image", "Foo Bar").stdout)
    assert found["docker"]["reason"].startswith("the image 'Foo Bar' cannot be looked up: ")


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("foo", ("foo", "latest")),
        ("foo:v1", ("foo", "v1")),
        ("a/b_c/d-e:1.0", ("a/b_c/d-e", "1.0")),
        ("localhost:5000/x", ("localhost:5000/x", "latest")),
        ("Example.org:5000/x:v2", ("Example.org:5000/x", "v2")),
    ],
)
def test_the_name_of_an_image_is_read(name, parts):
    assert repository_and_version(name) == parts


@pytest.mark.parametrize(
    "name", ["", ":x", "foo:", "Foo", "foo bar", "foo:a b", "a//b", "-a", "foo:" + "v" * 129]
)
def test_another_text_is_no_name_of_an_image(name):
    with pytest.raises(SandboxError, match="is no name of an image"):
        repository_and_version(name)


def test_bench_prints_a_ratio_and_counts_the_boxes_cpu_time(request):
    opened(request, "bwrap").close()
    done = run("--programs", "4", "--rounds", "2", "--json", module="benchmarks.sandbox")
    found = json.loads(done.stdout)
    assert found["fork and exec"]["ratio"] == 1
    assert found["bwrap"]["tests_per_s"] > 0
    assert found["bwrap"]["ratio"] > 0
    assert found["bwrap"]["cpu_ms"] > 2  # the harness alone takes some tenths; two boxes start for 64 tests


@pytest.mark.long
def test_both_methods_judge_the_benchmarks_programs_alike(request):
    work = jobs(4)
    with opened(request, "bwrap") as sandbox:
        assert sum(verdict.passed for verdict in sandbox.judge(work)) == 4 * TESTS
    assert forked(2, work) == 4 * TESTS
    assert forked(2, [Job("print(1)", [Stdio("", "2")])]) == 0
    assert _fork_chunk([("1 / 0", "")]) == [None]


def test_a_bad_number_is_refused():
    done = run("--rounds", "0", module="benchmarks.sandbox")
    assert done.returncode == 2
    assert "'0' is not an integer above 0" in done.stderr
