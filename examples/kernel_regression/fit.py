"""Stage `fit`: three estimates of the function from its noisy points, and how far each is from the truth.

Reads data/ and the section `fit` of params.yaml. Average pooling takes the mean of all points; the kernel
weighs them by a Gaussian of standard deviation 1; the trained kernel learns that deviation, 1 / w.

Writes plots/: curves.csv and curves.png (the estimates), weights/ (a heatmap of each), loss.csv (the sum of
squared errors before each epoch's step); and metrics/fit.json (a DVC metric):
  mse_…  mean squared error against the true function
  w      after training
All of it goes into one MLflow run; a server that is away delays nothing.
"""

import csv
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from pictures import draw_curves, draw_weights
from settings import FitParams, Params
from torch import Tensor

from passerelle.files import sha256_of_file, whole_folder, write_json
from passerelle.identity import identity
from passerelle.nn.attention_pooling import (
    KernelRegression,
    average_pooling,
    kernel_pooling,
    train_kernel_regression,
)
from passerelle.params_file import load_params
from passerelle.run_folder import repository_root, runs_folder
from passerelle.stages import run_stage
from passerelle.tracking import open_run

TRAIN, TEST = Path("data/train.csv"), Path("data/test.csv")
PLOTS, METRICS = Path("plots"), Path("metrics/fit.json")
DIGITS = 6
"""After the point, in the metrics file: what all machines agree on."""

Pooled = Mapping[str, tuple[NDArray[np.float64], NDArray[np.float64]]]
"""Estimator -> estimates (Q,) and weights (Q, K)."""


def main() -> None:
    params = load_params(FitParams, whole=Params)
    train, test = read_points(TRAIN), read_points(TEST)
    (x, y), (query, _) = torch.from_numpy(train), torch.from_numpy(test)
    model = KernelRegression(params.fit.initial_w).double()
    losses = train_kernel_regression(
        model, x, y, learning_rate=params.fit.learning_rate, num_epochs=params.fit.num_epochs
    )
    pooled = {
        "average_pooling": as_numpy(average_pooling(query, x, y)),
        "kernel": as_numpy(kernel_pooling(query, x, y)),
        "trained_kernel": as_numpy(model(query, x, y)),
    }
    write_plots(train, test, pooled, losses)
    metrics = {
        f"mse_{name}": round(float(np.square(estimates - test[1]).mean()), DIGITS)
        for name, (estimates, _) in pooled.items()
    }
    metrics["w"] = round(model.w.item(), DIGITS)
    write_json(METRICS, metrics)
    record(params, train.shape[1], metrics, losses)
    print("\n".join(f"{name:20} {value:8.4f}" for name, value in metrics.items()))


def read_points(path: Path) -> NDArray[np.float64]:
    """(2, N): x and y."""
    return np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2).T


def as_numpy(pooled: tuple[Tensor, Tensor]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Estimates and weights without their gradients."""
    estimates, weights = pooled
    return estimates.detach().numpy(), weights.detach().numpy()


def write_plots(
    train: NDArray[np.float64], test: NDArray[np.float64], pooled: Pooled, losses: Sequence[float]
) -> None:
    """The folder plots/, whole: tables that DVC draws and compares, and pictures."""
    estimates = {name: curve for name, (curve, _) in pooled.items()}
    with whole_folder(PLOTS) as folder:
        columns = {"x": test[0], "true_function": test[1], **estimates}
        write_table(folder / "curves.csv", list(columns), zip(*columns.values(), strict=True))
        write_table(folder / "loss.csv", ["epoch", "loss"], enumerate(losses, start=1))
        draw_curves(train, test, estimates, folder / "curves.png")
        (folder / "weights").mkdir()
        for name, (_, weights) in pooled.items():
            draw_weights(weights, name, folder / f"weights/{name}.png")


def write_table(path: Path, columns: Sequence[str], rows: Iterable[Sequence[float]]) -> None:
    """A CSV file."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)


def record(params: FitParams, num_points: int, metrics: Mapping[str, float], losses: Sequence[float]) -> None:
    """The MLflow run: found again by a hash of parameters and points, made where there is none."""
    digest = sha256_of_file(TRAIN)
    fingerprint = hashlib.sha256(f"{params.model_dump_json()} {digest}".encode()).hexdigest()[:16]
    with open_run(fingerprint, runs_folder() / fingerprint) as log:
        log.log_params(params.model_dump())
        log.log_tags(identity(repository_root()))
        log.log_dataset("training", TRAIN, digest, {"rows": num_points})
        log.log_rows([{"step": epoch, "loss": loss} for epoch, loss in enumerate(losses, start=1)])
        log.log_metrics(metrics)
        log.log_files(PLOTS, "plots")


if __name__ == "__main__":
    run_stage(main)
