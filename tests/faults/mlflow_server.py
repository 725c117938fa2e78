"""`mlflow server` as a real process."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import urlopen

from stage_process import PATIENCE


class MlflowServer:
    """Of the database in a folder; it can be started, halted, killed and started again, at one address."""

    def __init__(self, folder: Path) -> None:
        self._reserved = socket.socket()
        """Keeps the port from all others while no server listens there: bound, but not listening."""
        self._reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the server does
        self._reserved.bind(("127.0.0.1", 0))
        self.port = int(self._reserved.getsockname()[1])
        self.uri = f"http://127.0.0.1:{self.port}"
        self._command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--workers", "1",
                         "--port", str(self.port), "--backend-store-uri", f"sqlite:///{folder / 'mlflow.db'}",
                         "--artifacts-destination", str(folder / "mlartifacts")]  # fmt: skip
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        environment = {name: value for name, value in os.environ.items() if "MLFLOW" not in name}
        environment["MLFLOW_SERVER_ENABLE_JOB_EXECUTION"] = "false"  # it takes twice as long to start with it
        with (self._folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdout=log,
                stderr=log,
                env=environment,
                cwd=self._folder,
                start_new_session=True,
            )
        end = time.monotonic() + PATIENCE
        while True:
            assert self._process.poll() is None, (self._folder / "server.log").read_text()
            try:
                urlopen(f"{self.uri}/health", timeout=PATIENCE).close()
                return
            except OSError:
                assert time.monotonic() < end, (self._folder / "server.log").read_text()
                time.sleep(0.1)

    def send_signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            os.killpg(self._process.pid, number)
            if number == signal.SIGKILL:
                self._process.wait()
                self._process = None

    def close(self) -> None:
        """Kill it, and give its address free."""
        self.send_signal(signal.SIGKILL)
        self._reserved.close()
