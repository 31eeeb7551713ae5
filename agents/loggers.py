"""Where metrics go besides ``metrics.jsonl``: one line a step to any number of loggers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol


class Logger(Protocol):
    """Is given the metrics of every step, nested by name; a resumed run logs the steps after its checkpoint again."""

    def log(self, step: int, metrics: Mapping[str, Any]) -> None: ...

    def close(self) -> None: ...


def scalars(metrics: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    """The numbers among nested metrics, with names such as ``seconds/update``."""
    for name, value in metrics.items():
        if isinstance(value, Mapping):
            yield from scalars(value, f"{prefix}{name}/")
        elif isinstance(value, (int, float)):
            yield prefix + name, float(value)


class TensorBoardLogger:
    """Event files for TensorBoard in ``folder``."""

    def __init__(self, folder: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise ImportError(f"TensorBoardLogger needs tensorboard: pip install 'setpo-envs[loggers]' ({error})") from error
        self.writer = SummaryWriter(str(folder))

    def log(self, step: int, metrics: Mapping[str, Any]) -> None:
        for name, value in scalars(metrics):
            self.writer.add_scalar(name, value, step)

    def close(self) -> None:
        self.writer.close()


class WandbLogger:
    """A run of Weights & Biases, resumed where there is one called ``name``; ``options`` go to ``wandb.init``."""

    def __init__(self, project: str, name: str, config: Mapping[str, Any], **options: Any) -> None:
        try:
            import wandb
        except ImportError as error:
            raise ImportError(f"WandbLogger needs wandb: pip install 'setpo-envs[loggers]' ({error})") from error
        self.run = wandb.init(project=project, id=name, name=name, config=dict(config), resume="allow", **options)

    def log(self, step: int, metrics: Mapping[str, Any]) -> None:
        self.run.log(dict(scalars(metrics)), step=step)

    def close(self) -> None:
        self.run.finish()


def make_loggers(names: list[str], folder: Path, config: Mapping[str, Any]) -> list[Logger]:
    """Loggers of a run by name, "tensorboard" or "wandb". Raises ValueError for another name, ImportError naming the extra."""
    made: list[Logger] = []
    for name in names:
        if name == "tensorboard":
            made.append(TensorBoardLogger(folder / "tensorboard"))
        elif name == "wandb":
            made.append(WandbLogger("setpo", folder.name, config))
        else:
            raise ValueError(f"expected a logger out of tensorboard, wandb, got {name!r}")
    return made
