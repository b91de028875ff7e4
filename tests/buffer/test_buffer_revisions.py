"""Buffers read at git revisions and DVC experiments: nothing is checked out, nothing in the work tree changes."""

import hashlib
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from buffer_cases import command, house, record, write_house
from dvc.cli import main

from rlanything.buffer import TaskBufferError
from rlanything.buffer.views import diff
from rlanything.buffer.views.find.arms import seeds_of
from rlanything.buffer.views.find.names import find
from rlanything.buffer.views.find.revision import commit_of
from rlanything.files.project import SWEEP_EMAIL

pytestmark = pytest.mark.integration

SETTINGS = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_AUTHOR_NAME": "n",
    "GIT_AUTHOR_EMAIL": "n@example.org",
    "GIT_COMMITTER_NAME": "n",
    "GIT_COMMITTER_EMAIL": "n@example.org",
    "DVC_NO_ANALYTICS": "1",
}


def do(folder, *words):
    subprocess.run(words, cwd=folder, check=True, capture_output=True, env={**os.environ, **SETTINGS})


def dvc(folder, *words):
    """A command of DVC in this process: to import it takes longer than what it does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name, value in SETTINGS.items():
            patch.setenv(name, value)
        assert main([*words]) == 0


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A project with a commit of the start, one of two runs, a tag, and an experiment's reference."""
    root = tmp_path_factory.mktemp("project")
    do(root, "git", "init", "-q", "-b", "main")
    dvc(root, "init", "-q")
    for name in ("full/seed-0", "full/seed-1"):
        record(root / "runs" / name / "buffer", 0, house()[0])
    (root / "params.yaml").write_text("adaptation: {alpha_low: 0.2, alpha_high: 0.8}\n")
    keep(root, "the start")
    do(root, "git", "tag", "beginning")
    shutil.rmtree(root / "runs" / "full")
    write_house(root)
    (root / "params.yaml").write_text("adaptation: {alpha_low: 0.4, alpha_high: 0.8}\n")
    keep(root, "two runs")
    do(root, "git", "update-ref", "refs/exps/ab/cdef/bold-try", "HEAD")
    shutil.rmtree(root / "runs" / "full" / "seed-0" / "buffer")
    record(root / "runs" / "full" / "seed-0" / "buffer", 0, house()[0])
    (root / "params.yaml").write_text("adaptation: {alpha_low: 0.3, alpha_high: 0.8}\n")
    dvc(root, "commit", "-q", "-f")
    dvc(root, "exp", "save", "-q", "--name", "lower-try")
    do(root, "git", "checkout", "-q", "-f", "main")
    dvc(root, "checkout", "-q", "-f")
    return root


def keep(root, message):
    dvc(root, "add", "-q", "runs/full")
    do(root, "git", "add", "-A")
    do(root, "git", "commit", "-q", "-m", message)


@pytest.fixture
def project(made, tmp_path, monkeypatch):
    root = tmp_path / "project"
    shutil.copytree(made, root, symlinks=True)
    monkeypatch.chdir(root)
    return root


def test_a_revision_names_a_buffer(project):
    start, one, _ = house()
    assert find("beginning:full/seed-0").buffer == start
    assert find("HEAD~1:runs/full/seed-0@0").buffer == start
    head = find("main")
    assert (head.name, len(head.events)) == ("main:full/seed-0@2", sum(map(len, one)))
    assert find("bold-try:full/seed-1@1").name == "bold-try:full/seed-1@1"
    assert (find("HEAD~1").rule.alpha_low, head.rule.alpha_low) == (0.2, 0.4)


def test_the_run_that_a_revision_stands_for_is_named(project, capsys):
    for words, start in (
        (["ls", "main"], "main:full/seed-0  iteration 2: "),
        (["show", "main", "0"], "main:full/seed-0  slot 0, v1 (head), at iteration 2"),
        (["show", "bold-try:full/seed-1@1", "0"], "bold-try:full/seed-1  slot 0, v1 (head), at iteration 1"),
    ):
        assert command(*words) == 0
        assert capsys.readouterr().out.startswith(start)
        assert command(*words, "--json") == 0
        assert json.loads(capsys.readouterr().out)["run"] == start.partition(" ")[0]


def test_a_workspace_without_runs_hides_no_revision_of_its_name(project):
    space = project / ".rla" / "main"
    space.mkdir(parents=True)
    (space / "params.yaml").write_text("")
    assert find("main").name == "main:full/seed-0@2"
    with pytest.raises(TaskBufferError, match="workspace 'main' has no run yet"):
        find("main:full/seed-0")


def test_an_experiment_that_dvc_saved_is_found_by_its_name(project, capsys):
    saved = find("lower-try:full/seed-0")
    assert (saved.name, saved.buffer, saved.rule.alpha_low) == ("lower-try:full/seed-0@0", house()[0], 0.3)
    page = diff("lower-try:full/seed-0", "main:full/seed-0")
    assert (page["counts"]["harder"], page["counts"]["unchanged"]) == (2, 10)
    assert find("lower-try").name == "lower-try:full/seed-1@2", "the first run whose tasks changed"
    assert command("diff", "lower-tri", "main") == 2
    assert "nearest: lower-try" in capsys.readouterr().err
    with subprocess.Popen(["git", "status", "--porcelain"], stdout=subprocess.PIPE, text=True) as status:
        assert status.stdout.read() == "", "nothing was checked out"


def test_of_experiments_with_one_name_that_of_head_is_taken(project):
    commits = {name: commit_of(name, project) for name in ("beginning", "main", "lower-try")}
    assert commit_of("bold-try", project) == commits["main"] == commit_of("HEAD", project)
    assert commit_of("ORIG_HEAD~9", project) is None
    for base, named in (("ab/other", "HEAD"), ("ab/another", "beginning")):
        do(project, "git", "update-ref", f"refs/exps/{base}/twice", named)
    with pytest.raises(
        TaskBufferError, match=r"revision 'twice': 2 experiments .*none of them varies HEAD; name"
    ):
        find("twice:full/seed-0")
    head = commits["main"]
    do(project, "git", "update-ref", f"refs/exps/{head[:2]}/{head[2:]}/twice", commits["lower-try"])
    assert commit_of("twice", project) == commits["lower-try"]


def test_revisions_are_compared_without_a_checkout(project, capsys):
    shutil.rmtree(project / "runs")
    page = diff("HEAD~1", "bold-try:full/seed-0")
    assert (page["a"]["name"], page["b"]["name"]) == ("HEAD~1:full/seed-0@0", "bold-try:full/seed-0@2")
    assert page["counts"]["harder"] == 2
    assert page["difficulty"]["inside"]["old"]["low"] == 0.2
    assert page["difficulty"]["inside"]["new"]["low"] == 0.4
    assert command("diff", "beginning", "main", "--json") == 0
    assert json.loads(capsys.readouterr().out)["counts"]["harder"] == 2
    assert not (project / "runs").exists()


def test_every_command_takes_a_revision(project, capsys):
    shutil.rmtree(project / "runs")
    for words in (
        ["ls", "main"],
        ["show", "bold-try", "3"],
        ["log", "main"],
        ["verify", "main", "--band", "0.2:0.8"],
        ["drift", "main"],
    ):
        assert command(*words) == 0
    assert command("export", "main", str(project / "out.jsonl")) == 0
    assert "every record holds" in capsys.readouterr().out


def test_a_revision_alone_is_compared_with_the_disk(project):
    page = diff("beginning")
    assert page["b"]["name"] == "full/seed-0@2"
    assert page["counts"]["harder"] == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["maim"], "no path, run or revision 'maim'; nearest: main"),
        (["bold-tri:full/seed-0"], "no path, run or revision 'bold-tri'; nearest: bold-try"),
        (["main:full/sed-0"], "no run 'full/sed-0' at revision main; nearest: full/seed-0"),
        (["main:full/seed-0@9"], "main:full/seed-0: no snapshot of iteration 9 (there are 0 to 2)"),
        (["zzz"], "no path, run or revision 'zzz'"),
    ],
)
def test_unknown_names_offer_the_nearest(project, capsys, words, message):
    assert command("diff", *words) == 2
    assert message in capsys.readouterr().err


def test_an_empty_revision_and_one_that_is_no_commit_are_refused(project):
    for name in (":full/seed-0", ":"):
        with pytest.raises(TaskBufferError, match="the revision before the colon is empty"):
            find(name, project)
    with pytest.raises(TaskBufferError, match=r"revision HEAD\^\{tree\}: it is no commit"):
        find("HEAD^{tree}:full/seed-0", project)


def test_a_workspace_has_no_revisions_and_does_not_read_those_of_its_project(project):
    space = project / ".rla" / "bold"
    write_house(space)
    with pytest.raises(TaskBufferError) as told:
        find("HEAD:full/seed-0", space)
    said = f"git and DVC keep {project}, so revisions are named there; nearest: full/seed-0, full/seed-1"
    assert str(told.value) == f"no run 'HEAD:full/seed-0' in {space}, and no revision: {said}"
    assert find("full/seed-0", space).buffer == find(".rla/bold/runs/full/seed-0", project).buffer


@pytest.fixture(scope="module")
def pushed(made, tmp_path_factory):
    """The project, which pushed everything to a remote, the folder beside it, and lost its cache."""
    both = tmp_path_factory.mktemp("both")
    project = both / "project"
    shutil.copytree(made, project, symlinks=True)
    dvc(project, "remote", "add", "-q", "-d", "store", "../store")
    dvc(project, "push", "-q", "--all-commits")
    do(project, "git", "commit", "-q", "-a", "-m", "a remote")
    shutil.rmtree(project / ".dvc" / "cache")
    return both


@pytest.fixture
def remote(pushed, tmp_path, monkeypatch):
    """Where the remote lies; the work directory is the project."""
    shutil.copytree(pushed, tmp_path / "both", symlinks=True)
    monkeypatch.chdir(tmp_path / "both" / "project")
    return tmp_path / "both" / "store"


LOST = "revision main: not in the DVC cache, nor in a remote; try `dvc fetch --all-commits`"


def test_what_the_cache_lacks_comes_from_the_remote(remote, capsys):
    shutil.rmtree("runs")
    assert find("main:full/seed-0@2").buffer.accepted == 2, "with the snapshot that it builds on"
    assert command("verify", "main", "--band", "0.2:0.8") == 0
    assert "every record holds" in capsys.readouterr().out
    assert not Path("runs").exists()


def test_a_remote_that_is_gone_is_told(remote):
    shutil.rmtree(remote)
    with pytest.raises(TaskBufferError, match=LOST):
        assert find("main:full/seed-0").buffer
    with pytest.raises(TaskBufferError, match=rf"{LOST} \(runs/full\)"):
        find("main")


def test_a_base_that_neither_cache_nor_remote_has_is_told(remote):
    """Every later snapshot is there; the one that they build on is not."""
    first = Path("runs/full/seed-0/buffer/iter_0000.jsonl").read_bytes()
    digest = hashlib.md5(first).hexdigest()
    (remote / "files" / "md5" / digest[:2] / digest[2:]).unlink()
    with pytest.raises(TaskBufferError, match=LOST):
        assert find("main:full/seed-0@2").buffer


@pytest.fixture
def half(project):
    """The project with a second arm, of which the DVC cache has nothing."""
    record(project / "runs" / "policy" / "seed-0" / "buffer", 0, house()[0])
    dvc(project, "add", "-q", "runs/policy")
    do(project, "git", "add", "-A")
    do(project, "git", "commit", "-q", "-m", "a second arm")
    digest = re.search(r"md5: (\w+\.dir)", (project / "runs" / "policy.dvc").read_text())[1]
    (project / ".dvc" / "cache" / "files" / "md5" / digest[:2] / digest[2:]).unlink()
    shutil.rmtree(project / "runs" / "policy")
    return project


def test_an_arm_that_the_cache_lacks_hides_no_other(half):
    assert diff("HEAD:full/seed-0", "full/seed-0")["counts"]["unchanged"] == 12
    assert find("HEAD").name == "HEAD:full/seed-0@2", (
        "the first run whose tasks changed, of those that are here"
    )
    lost = "not in the DVC cache, nor in a remote; try `dvc fetch --all-commits` (runs/policy)"
    for name, said in (
        (
            "HEAD:full/sed-0",
            f"no run 'full/sed-0' at revision HEAD; nearest: full/seed-0, full/seed-1; {lost}",
        ),
        (
            "HEAD:policy/seed-0",
            f"revision HEAD: {lost.partition(' (')[0]} (failed to load directory ('runs', 'policy'))",
        ),
    ):
        with pytest.raises(TaskBufferError) as told:
            find(name)
        assert str(told.value) == said


@pytest.mark.parametrize(
    "rest", ["full/seed-0/buffer", "full/../full/seed-0", "../runs/full/seed-0", "/etc", "full"]
)
def test_a_revisions_run_is_named_by_arm_and_seed(project, rest):
    with pytest.raises(TaskBufferError, match=f"no run '{rest}' at revision main; "):
        find(f"main:{rest}")


def test_a_git_project_without_dvc_will_do(tmp_path):
    do(tmp_path, "git", "init", "-q", "-b", "main")
    do(tmp_path, "git", "commit", "-q", "--allow-empty", "-m", "empty")
    with pytest.raises(TaskBufferError, match="revision main has no run with a buffer below runs/"):
        find("main", tmp_path)
    write_house(tmp_path)
    do(tmp_path, "git", "add", "-A")
    do(tmp_path, "git", "commit", "-q", "-m", "runs")
    shutil.rmtree(tmp_path / "runs")
    assert find("main", tmp_path).name == "main:full/seed-0@2"


def test_a_partial_clone_says_what_it_lacks(made, tmp_path):
    """DVC would wait for ever."""
    do(made, "git", "config", "uploadpack.allowFilter", "true")
    do(tmp_path, "git", "clone", "-q", "--filter=blob:none", "--no-checkout", made.as_uri(), "place")
    with pytest.raises(
        TaskBufferError, match=r"HEAD: \d+ files or folders .* `git fetch --refetch --no-filter`"
    ):
        find("HEAD:full/seed-0", tmp_path / "place")


def test_an_arm_at_a_revision_is_compared_with_that_on_disk(project, capsys):
    assert seeds_of("HEAD:full") == seeds_of("main:runs/full") == seeds_of("full") == ["seed-0", "seed-1"]
    assert seeds_of("HEAD:nobody") == seeds_of("HEAD:full/seed-0") == seeds_of("nowhere:full") == []
    assert command("diff", "HEAD:full", "full") == 0
    assert "kappa of A and B, one seed  mean 1.00 of 2: 1.00, 1.00\n" in capsys.readouterr().out


def trial_of(project):
    """The hash of a commit as a sweep records a trial."""
    tree = ["git", "-C", str(project), "commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", "sweep: case-0001"]
    author = {f"GIT_{who}_EMAIL": SWEEP_EMAIL for who in ("AUTHOR", "COMMITTER")}
    done = subprocess.run(
        tree, check=True, capture_output=True, text=True, env={**os.environ, **SETTINGS, **author}
    )
    return done.stdout.strip()


def test_a_trial_that_a_sweep_recorded_has_no_run_of_its_own_there(project):
    """Its commit has the runs of the commit that it varies."""
    do(project, "git", "update-ref", "refs/exps/ab/cdef/case-0001", trial_of(project))
    with pytest.raises(TaskBufferError, match=r"case-0001: a trial of a sweep.*sweeps/<name>/trials"):
        find("case-0001:full/seed-0")


def test_the_name_of_a_trial_alone_says_so_though_the_runs_are_nowhere(project):
    """Without its own runs, HEAD's are what is looked for; to fetch them would not help."""
    do(project, "git", "update-ref", "refs/exps/ab/cdef/case-0001", trial_of(project))
    shutil.rmtree(project / ".dvc" / "cache", ignore_errors=True)
    with pytest.raises(TaskBufferError, match=r"case-0001: a trial of a sweep.*sweeps/<name>/trials"):
        find("case-0001")
