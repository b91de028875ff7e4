"""The splits are named once; whatever else must name them agrees."""

from rlanything.config import TasksConfig
from rlanything.core.splits import FAMILIAR, PANELS, SPLITS, TRAIN


def test_the_configuration_counts_the_tasks_of_every_split():
    counts = [name for name, field in TasksConfig.model_fields.items() if field.is_required()]
    assert counts == list(SPLITS)


def test_one_split_is_trained_on_and_the_others_are_frozen():
    assert (TRAIN, *PANELS) == SPLITS
    assert set(FAMILIAR) < set(SPLITS)
