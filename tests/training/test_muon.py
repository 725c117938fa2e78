"""Muon against torch's own, and against the singular value decomposition that it stands for."""

import pytest
import torch
from torch import Tensor, nn

from passerelle.config import ModelConfig
from passerelle.models import build_model
from passerelle.training.group import ALONE, Group
from passerelle.training.master import make_master
from passerelle.training.muon import MOMENTUM, NUM_ITERATIONS, Muon, make_muon, muon_step, orthogonalised
from tiny import VOCAB_SIZE, tiny_config, tiny_model

SHAPES = {"wide": (5, 12), "tall": (12, 5), "square": (7, 7), "other_square": (7, 7), "other_wide": (5, 12)}


def random_parameters(seed: int) -> dict[str, nn.Parameter]:
    generator = torch.Generator().manual_seed(seed)
    return {name: nn.Parameter(torch.randn(shape, generator=generator)) for name, shape in SHAPES.items()}


def set_gradients(parameters: dict[str, nn.Parameter], step: int) -> None:
    for number, parameter in enumerate(parameters.values()):
        generator = torch.Generator().manual_seed(100 * step + number)
        parameter.grad = torch.randn(parameter.shape, generator=generator)


def move(muon: Muon, group: Group = ALONE, dtype: torch.dtype = torch.float32) -> None:
    muon_step(muon, rate=0.03, weight_decay=0.1, dtype=dtype, group=group, is_skipped=torch.tensor(False))


def test_steps_are_those_of_torch() -> None:
    """torch computes in bfloat16; so does this here."""
    ours, theirs = random_parameters(1), random_parameters(1)
    muon = make_muon(ours)
    reference = torch.optim.Muon(
        theirs.values(), lr=0.03, weight_decay=0.1, momentum=MOMENTUM, ns_steps=NUM_ITERATIONS
    )
    for step in range(4):
        set_gradients(ours, step)
        set_gradients(theirs, step)
        move(muon, dtype=torch.bfloat16)
        reference.step()
    for name, parameter in ours.items():
        torch.testing.assert_close(parameter, theirs[name], atol=5e-3, rtol=0)  # four steps of about 0.03
        assert not torch.equal(parameter, random_parameters(1)[name])


@pytest.mark.parametrize("shape", [(6, 15), (15, 6), (9, 9)])
def test_directions_have_singular_values_near_one_and_the_singular_vectors_of_the_matrix(
    shape: tuple[int, int],
) -> None:
    """Of matrices whose singular values are within a factor of ten of each other."""
    random = torch.randn(3, *shape, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    left, _, right = torch.linalg.svd(random, full_matrices=False)
    values = torch.linspace(1.0, 0.1, min(shape), dtype=torch.float64)
    found = orthogonalised(left @ torch.diag(values) @ right)
    diagonal = left.mT @ found @ right.mT
    kept = torch.diagonal(diagonal, dim1=1, dim2=2)
    assert kept.min() > 0.65
    assert kept.max() < 1.25
    torch.testing.assert_close(diagonal, torch.diag_embed(kept), atol=1e-10, rtol=0)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_the_length_of_a_gradient_does_not_matter(scale: float) -> None:
    matrices = torch.randn(2, 4, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(4))
    torch.testing.assert_close(orthogonalised(scale * matrices), orthogonalised(matrices), atol=1e-5, rtol=0)


def test_a_gradient_of_zero_moves_nothing() -> None:
    assert torch.equal(orthogonalised(torch.zeros(2, 3, 4)), torch.zeros(2, 3, 4))


def test_workers_that_share_the_matrices_move_them_as_one_does() -> None:
    alone, shared = random_parameters(2), random_parameters(2)
    muon_alone = make_muon(alone)
    set_gradients(alone, 0)
    move(muon_alone)
    set_gradients(shared, 0)
    # Run worker by worker: the last adds the directions that the others made.
    found: list[Tensor] = []
    for rank in range(3):
        muon = make_muon({name: nn.Parameter(value.detach().clone()) for name, value in shared.items()})
        set_gradients(muon.parameters, 0)

        def reduce(directions: Tensor, rank: int = rank) -> None:
            found.append(directions.clone())
            if rank == 2:
                directions.copy_(torch.stack(found).sum(0))

        move(muon, Group(rank, 3, reduce))
    assert all((directions != 0).any() for directions in found)
    for name, parameter in alone.items():
        torch.testing.assert_close(muon.parameters[name], parameter, atol=1e-5, rtol=0)


def test_muon_moves_the_matrices_within_and_adam_the_rest() -> None:
    model = tiny_model()
    master = make_master(model, tiny_config(optimizer="muon"))
    assert master.muon is not None
    matrices = {name for name, value in model.named_parameters() if value.dim() == 2}
    assert set(master.muon.parameters) == matrices - {"source_embedding.weight"}
    assert master.adam.parameters.keys() == master.parameters.keys() - master.muon.parameters.keys()


def test_tables_and_vectors_are_adams_in_every_model() -> None:
    """Learned positions are a table, and the vector of an additive score is one row."""
    for changes in ({"positions": "learned", "attention": "additive"}, {"name": "bahdanau"}):
        config = ModelConfig(d_model=12, num_heads=3, num_layers=1, share_embeddings=False, **changes)
        master = make_master(build_model(config, VOCAB_SIZE), tiny_config(optimizer="muon"))
        assert master.muon is not None
        adams = {name for name in master.parameters if name not in master.muon.parameters}
        assert {name for name in adams if "embedding" in name} == {
            "source_embedding.weight",
            "target_embedding.weight",
        }
        others = {"positions.table.weight"} if "positions" in changes else {"cross_attention.score.weight"}
        assert adams >= others | {"output.weight"}


def test_adam_alone_moves_everything() -> None:
    master = make_master(tiny_model(), tiny_config(optimizer="adam"))
    assert master.muon is None
    assert master.adam.parameters.keys() == master.parameters.keys()
