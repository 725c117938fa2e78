"""The password of the MLflow server that nobody has started (fixture `dead_server`): it must never be shown."""

SECRET = "open-sesame"
