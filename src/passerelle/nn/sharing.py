"""Rows of a batch that attend to one source sentence, side by side as its queries.

In beam search the hypotheses of a sentence share its memory. Grouped, they are queries of one attention, and memory
is kept once for each sentence, neither copied for each hypothesis nor again whenever one ends.
Shapes: R rows, N sentences, W the most rows of a sentence, T tokens, D width.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Sharing:
    """Which row attends to which sentence, and where it stands in a grid of N sentences by W places."""

    sentence: Tensor
    """(R,)"""
    place: Tensor
    """(R,), of N * W; each row has its own."""
    num_sentences: int
    width: int
    """W"""

    def group(self, rows: Tensor) -> Tensor:
        """rows (R, T, D) -> (N, W * T, D), zeros where no row stands."""
        grid = rows.new_zeros(self.num_sentences * self.width, *rows.shape[1:])
        return grid.index_copy(0, self.place, rows).view(self.num_sentences, -1, rows.size(-1))

    def ungroup(self, grid: Tensor) -> Tensor:
        """(N, W * T, D) -> rows (R, T, D), as `group` received them."""
        places = grid.view(self.num_sentences * self.width, -1, grid.size(-1))
        return places.index_select(0, self.place)


def share(sentence: Tensor, num_sentences: int) -> Sharing | None:
    """How rows attend to num_sentences sentences; None where row i alone attends to sentence i.

    sentence (R,): the one of each row, from 0 to below num_sentences, in any order.
    """
    rows = torch.arange(sentence.size(0), device=sentence.device)
    if sentence.size(0) == num_sentences and torch.equal(sentence, rows):
        return None
    counts = sentence.bincount(minlength=num_sentences)
    first = counts.cumsum(0) - counts  # (N,), of each sentence's rows in the sorted order
    order = sentence.argsort(stable=True)
    slot = torch.empty_like(rows)
    slot[order] = rows - first[sentence[order]]
    width = int(counts.max()) if sentence.size(0) else 0
    return Sharing(sentence, sentence * width + slot, num_sentences, width)
