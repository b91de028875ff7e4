"""The typed configuration: every number of the algorithm by name, checked before any work starts.

`params.yaml` is the composed configuration (Hydra groups in `experiments/`); `parse` turns it into `Config` or
raises `ConfigError` that names every bad key, its value, what is allowed and the nearest known name.
Defaults are those of the paper's ALFWorld experiment, else of its reference code, else ours:
`rlanything.config.sources` says which.
"""

from rlanything.config.algorithm import (
    MATRICES,
    AdaptationConfig,
    ArmConfig,
    JudgeConfig,
    JudgeSource,
    LearnConfig,
    LoraConfig,
    OptimizerConfig,
    RolloutConfig,
    SignalsConfig,
)
from rlanything.config.endpoints import Endpoint, Endpoints
from rlanything.config.evaluation import (
    BASE,
    BASE_COOLED,
    CONTROLS,
    ORACLE,
    CoolingConfig,
    EvaluateConfig,
    LabelJudge,
    Sampler,
)
from rlanything.config.executor import ExecutorConfig
from rlanything.config.experiment import Config
from rlanything.config.models import Architecture, BootstrapConfig, Checkpoint, ModelConfig, SupervisedConfig
from rlanything.config.reading import load, parse
from rlanything.config.section import LISTED, Positive, Precision, Section
from rlanything.config.tasks import PanelConfig, TasksConfig, size_key
from rlanything.config.training import TrainConfig

__all__ = [
    "BASE",
    "BASE_COOLED",
    "CONTROLS",
    "LISTED",
    "MATRICES",
    "ORACLE",
    "AdaptationConfig",
    "Architecture",
    "ArmConfig",
    "BootstrapConfig",
    "Checkpoint",
    "Config",
    "CoolingConfig",
    "Endpoint",
    "Endpoints",
    "EvaluateConfig",
    "ExecutorConfig",
    "JudgeConfig",
    "JudgeSource",
    "LabelJudge",
    "LearnConfig",
    "LoraConfig",
    "ModelConfig",
    "OptimizerConfig",
    "PanelConfig",
    "Positive",
    "Precision",
    "RolloutConfig",
    "Sampler",
    "Section",
    "SignalsConfig",
    "SupervisedConfig",
    "TasksConfig",
    "TrainConfig",
    "load",
    "parse",
    "size_key",
]
