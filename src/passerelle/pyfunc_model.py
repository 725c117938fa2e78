"""The translator as MLflow serves it: this file is stored with the model and run where it is loaded.

Input is a list of sentences in the source language, output the list of their translations, found by beam
search with the default settings of `DecodingConfig`.
"""

from pathlib import Path
from typing import Any

from mlflow.models import set_model
from mlflow.pyfunc import PythonModel

from passerelle.config import DecodingConfig
from passerelle.decoding.translate import translate
from passerelle.model_folder import LoadedModel, load_model


class Translator(PythonModel):  # type: ignore[misc]
    """Loads the model folder among the artifacts and translates."""

    loaded: LoadedModel

    def load_context(self, context: Any) -> None:
        """Called once, where the model is loaded."""
        self.loaded = load_model(Path(context.artifacts["model"]))

    def predict(self, model_input: list[str]) -> list[str]:
        """One translation for each sentence."""
        return [translation.text for translation in translate(self.loaded, model_input, DecodingConfig())]


set_model(Translator())
