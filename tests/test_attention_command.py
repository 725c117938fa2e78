"""`passerelle attention`: the grid in the terminal, the tensors, the pictures."""

import json
from pathlib import Path

import pytest
from safetensors.numpy import load_file

from passerelle.cli import main
from passerelle.config import DecodingConfig
from passerelle.decoding.translate import translate
from passerelle.evaluation.alignment_grid import alignment_grid
from passerelle.evaluation.attention_maps import attention_map
from passerelle.model_folder import load_model
from small_model import SOURCES, write_small_model


def test_attention_prints_a_grid_and_writes_tensors_and_pictures(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    model = write_small_model(tmp_path)
    main(["attention", SOURCES[0], "--model", str(model), "--out", str(tmp_path / "out")])
    output = capfd.readouterr().out
    loaded = load_model(model)
    [translation] = translate(loaded, [SOURCES[0]], DecodingConfig())
    attention = attention_map(loaded, translation)
    assert output.split("\n")[0] == translation.text
    assert alignment_grid(attention, 60) in output
    files = sorted(path.name for path in (tmp_path / "out").iterdir())
    kinds = [f"01-we-see-a-boat.{kind}.png" for kind in ("cross", "decoder_self", "encoder")]
    assert files == sorted([*kinds, "01-we-see-a-boat.json", "01-we-see-a-boat.safetensors"])
    assert {Path(line).name for line in output.splitlines()[-3:]} == set(kinds)
    weights = load_file(tmp_path / "out" / "01-we-see-a-boat.safetensors")["cross"]
    tokens = json.loads((tmp_path / "out" / "01-we-see-a-boat.json").read_text(encoding="utf-8"))
    assert weights.shape[2:] == (len(tokens["target_tokens"]), len(tokens["source_tokens"]))


def test_a_sentence_without_text_is_refused_in_one_line(tmp_path: Path) -> None:
    model = write_small_model(tmp_path)
    with pytest.raises(SystemExit, match=r"error: ' \\t': no text, so nothing to attend to") as stopped:
        main(["attention", " \t", "--model", str(model), "--out", str(tmp_path / "out")])
    assert "\n" not in str(stopped.value)
    assert not (tmp_path / "out").exists()
