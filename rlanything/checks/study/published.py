"""A published study, read again from its own folder: what its page is drawn from, without its runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from rlanything.checks.study import recomputed, registration
from rlanything.checks.study.declare import Hypothesis, Study, load_study
from rlanything.checks.study.earlier import RESULTS, is_published
from rlanything.checks.study.registration import Stamp
from rlanything.checks.study.results import Found, Row
from rlanything.checks.study.rewriting import Part
from rlanything.checks.study.verdict import Tested, Verdict
from rlanything.config import parse
from rlanything.config.reading import validated
from rlanything.core.errors import ConfigError
from rlanything.core.records.forms import first_error
from rlanything.files.project import PARAMS
from rlanything.files.reader import read_object
from rlanything.files.yaml_file import read_mapping
from rlanything.report.contents import contents_of
from rlanything.report.results.details import read_extras
from rlanything.report.results.metrics import Metric, metrics_for
from rlanything.report.results.statistics import Contrast, Estimate

DECLARATION = "study.yaml"


class _Difference(BaseModel):
    """A difference with the corrected p of both tests."""

    mean: float
    low: float | None
    high: float | None
    p: float | None
    p_smallest: float | None


class _Tested(BaseModel):
    """What study.json says of one hypothesis."""

    model_config = ConfigDict(extra="ignore")

    difference: _Difference | None
    verdict: Verdict


class _Results(BaseModel):
    """The numbers of study.json, and what it declared. rewriting: absent in the files of older versions."""

    model_config = ConfigDict(extra="ignore")

    declared: dict[str, Any]
    registration: Stamp
    hypotheses: dict[str, _Tested]
    arms: dict[str, dict[str, Estimate]]
    rewriting: dict[str, tuple[Part, ...]] = {}


def read_published(folder: Path) -> Found:
    """What the published study in `folder` found. Every number of its tables is that of study.json.

    Raises `ConfigError` where nothing was published, where a file of it is damaged or of another study, where a result
    does not follow from evaluation/ or a registration is not that in git; `ReportError` for an evaluation that cannot
    be read.
    """
    if not is_published(folder):
        raise ConfigError(f"{folder / RESULTS}: no such file; run the study first, or take it from git")
    study, config = load_study(folder / DECLARATION), parse(read_mapping(folder / PARAMS))
    results, metrics = _results(folder / RESULTS), metrics_for(config)
    if set(results.hypotheses) != set(study.hypotheses):
        raise ConfigError(
            f"{folder / RESULTS}: hypotheses {sorted(results.hypotheses)}, and {DECLARATION} declares "
            f"{sorted(study.hypotheses)}; take both from git"
        )
    registered = registration.read_registration(folder / registration.FILE)
    for name, declared in ((RESULTS, results.declared), (registration.FILE, registered.declared)):
        if validated(Study, declared, f"{folder / name}: what it declares is not a valid study") != study:
            raise ConfigError(f"{folder / name}: {DECLARATION} declares another study; take both from git")
    if results.registration != Stamp(**registered.model_dump(include=set(Stamp.model_fields))):
        raise ConfigError(
            f"{folder / RESULTS}: published under the registration of {results.registration.at}, and "
            f"{registration.FILE} is another one; take both from git"
        )
    registration.require_as_in_git(registered, folder / registration.FILE)
    if differ := registration.changed_since(registered, config):
        raise ConfigError(
            f"{folder / PARAMS}: not the configuration that was registered; differs in {differ}; take it from git"
        )
    by_name = {metric.name: metric for metric in metrics}
    extras = read_extras(folder, study.measured, "take it from git")
    found = Found(
        study,
        registered,
        contents_of(config),
        metrics,
        tuple(
            _row(name, given, by_name[given.metric], results.hypotheses[name], study)
            for name, given in study.hypotheses.items()
        ),
        _in_order(study, results.arms),
        _in_order(study, results.rewriting),
        extras.within,
        extras.crashed,
    )
    recomputed.check(found, folder)
    return found


def _results(path: Path) -> _Results:
    try:
        return _Results.model_validate(read_object(path, "take it from git"))
    except ValidationError as error:
        raise ConfigError(f"{path}: {first_error(error)}; take it from git") from None


def _row(name: str, given: Hypothesis, metric: Metric, found: _Tested, study: Study) -> Row:
    contrast, p_smallest = None, None
    if (d := found.difference) is not None:
        contrast, p_smallest = Contrast(Estimate(d.mean, d.low, d.high), d.p), d.p_smallest
    return Row(name, given, metric, Tested(contrast, p_smallest, study.least(given)), found.verdict)


def _in_order(study: Study, arms: Mapping[str, Any]) -> dict[str, Any]:
    """The same in the order in which arms are measured: JSON files have their keys sorted."""
    return {arm: arms[arm] for arm in study.measured if arm in arms}
