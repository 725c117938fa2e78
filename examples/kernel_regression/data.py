"""Stage `data`: points of a known function, with noise to learn from and without to compare with.

Reads the section `data` of params.yaml. Writes data/train.csv (x, y), sorted by x, and data/test.csv (x, y).
The function is the chapter's, y = 2 sin x + x^0.8.
"""

import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from settings import DataConfig, DataParams, Params

from passerelle.files import whole_file
from passerelle.params_file import load_params
from passerelle.stages import run_stage

Points = tuple[NDArray[np.float64], NDArray[np.float64]]


def main() -> None:
    params = load_params(DataParams, whole=Params)
    write_points(Path("data/train.csv"), training_points(params.data))
    write_points(Path("data/test.csv"), test_points(params.data))


def training_points(config: DataConfig) -> Points:
    """x (N,) drawn uniformly and sorted, y (N,) with noise."""
    generator = np.random.default_rng(config.seed)
    x = np.sort(generator.uniform(0.0, config.highest, config.num_points))
    return x, true_function(x) + generator.normal(0.0, config.noise, config.num_points)


def test_points(config: DataConfig) -> Points:
    """x (Q,) in equal steps from 0 to below the highest, y (Q,) without noise."""
    num_places = math.ceil(round(config.highest / config.test_step, 9))  # 1.1 / 0.1 is above 11
    x = config.test_step * np.arange(num_places, dtype=np.float64)
    return x, true_function(x)


def true_function(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """What the estimators do not know."""
    return 2 * np.sin(x) + x**0.8


def write_points(path: Path, points: Points) -> None:
    """A CSV file with the columns x and y, every digit kept."""
    with whole_file(path) as temporary:
        lines = ["x,y", *(f"{float(x)!r},{float(y)!r}" for x, y in zip(*points, strict=True))]
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    run_stage(main)
