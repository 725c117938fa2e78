"""A web server of a corpus, which can stall in the midst of it."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread

from passerelle.corpus.phrasebook import phrasebook_pairs


class Corpus(BaseHTTPRequestHandler):
    """Sends the phrasebook; where the server `stalls`, half of it and then nothing for as long as it does."""

    server: "CorpusServer"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.server.text)))
        self.end_headers()
        half = len(self.server.text) // 2
        self.wfile.write(self.server.text[:half])
        self.server.may_go_on.wait()
        try:
            self.wfile.write(self.server.text[half:])
        except ConnectionError:  # whoever asked has been stopped
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Nothing."""


class CorpusServer(ThreadingHTTPServer):
    """Of a corpus of sentence pairs, on loopback."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Corpus)
        pairs = list(phrasebook_pairs())[::3]
        self.text = "".join(f"{source}\t{target}\n" for source, target in pairs).encode()
        self.may_go_on = Event()
        self.may_go_on.set()


@contextmanager
def corpus_server() -> Iterator[CorpusServer]:
    with CorpusServer() as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.may_go_on.set()
        server.shutdown()
        thread.join()
