# SPDX-License-Identifier: Apache-2.0
"""The server as one process: store, names, gRPC for agents, HTTP for people, and the upkeep between them."""

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import grpc
import waitress

from server.config import Settings
from server.errors import Overloaded, ServerError
from server.fleet.reporter import Reporter
from server.fleet.watch import Watch
from server.fleet.webhooks import Deliverer, Hooks
from server.http.app import create_app
from server.http.listening import bound_sockets, refusal_to_listen
from server.http.services import AppServices
from server.http.sizes import MOST_PIECE_BYTES
from server.ingest.push import Ingest
from server.ingest.service import add_services
from server.query.profile_query import ProfileQuery
from server.query.search_query import index_new_stacks
from server.store.engine import DirectoryLock, address_of_file
from server.store.migrate import migrate
from server.store.protocol import RetireLimits
from server.store.sql_store import SqlStore
from server.symbols.debian_packages import DebianPackages
from server.symbols.debuginfod import parse_upstreams
from server.symbols.desk import SymbolDesk
from server.symbols.file_uploads import FileUploads
from server.symbols.namer import Namer
from server.symbols.settings import SymbolSettings
from server.symbols.unwind_tables import UnwindTables
from server.upkeep import Upkeep

GRPC_THREADS = 8
HTTP_THREADS = 8
MESSAGE_BYTES = 17 << 20
UPKEEP_S = 20.0
WATCH_S = 15.0
DELIVER_S = 5.0
_GRACE_S = 3.0


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where the server listens, HOST:PORT, with the ports that were really taken."""

    http: str
    grpc: str


class Server:
    """Everything of one data directory. `start`, then `close`."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._closing = ExitStack()
        self._is_closing = threading.Event()
        self._upkeep = Upkeep()

    def start(self) -> Addresses:
        """Bring up the schema, then listen. Raises ServerError naming what is in the way and the remedy."""
        try:
            return self._start()
        except BaseException:
            self._closing.close()
            raise

    def close(self) -> None:
        """Answer what is in flight, then let go of everything."""
        self._is_closing.set()
        self._closing.close()

    def _start(self) -> Addresses:
        symbol_settings = _symbol_settings(self._settings)
        data = _made(Path(self._settings.data_dir))
        lock = DirectoryLock(data)
        self._closing.callback(lock.release)
        url = address_of_file(data / "emberwatch.db")
        try:
            migrate(url)
        except Overloaded as error:
            raise ServerError(f"cannot start on the data in {data}: {error}") from error
        self._store = SqlStore(url)
        self._closing.callback(self._store.close)
        self._namer = Namer(symbol_settings)
        self._closing.callback(self._namer.close)
        self._unwind_tables = UnwindTables(data / "unwind")
        grpc_address = self._serve_grpc()
        self._query = ProfileQuery(self._store, self._namer, time.time_ns)
        self._deliverer = Deliverer(self._query, _hooks(self._settings))
        http_address = self._serve_http()
        for run in (self._keep_up, self._watch, self._deliver):
            thread = threading.Thread(target=run, name=run.__name__, daemon=True)
            thread.start()
            self._closing.callback(thread.join, _GRACE_S)
        return Addresses(http_address, grpc_address)

    def _serve_grpc(self) -> str:
        options = [
            ("grpc.max_receive_message_length", MESSAGE_BYTES),
            ("grpc.max_send_message_length", MESSAGE_BYTES),
            ("grpc.so_reuseport", 0),
        ]
        server = grpc.server(ThreadPoolExecutor(GRPC_THREADS, "grpc"), options=options, maximum_concurrent_rpcs=4 * GRPC_THREADS)
        self._ingest = Ingest(self._store, self._namer, time.time_ns)
        add_services(server, self._ingest, self._namer, self._unwind_tables)
        host = self._settings.grpc.rpartition(":")[0]
        try:
            port = server.add_insecure_port(self._settings.grpc)
        except RuntimeError as error:
            reason = refusal_to_listen(self._settings.grpc) or str(error)
            raise ServerError(f"cannot listen for agents on {self._settings.grpc}: {reason}; choose another address with --grpc") from error
        server.start()
        self._closing.callback(lambda: server.stop(_GRACE_S).wait())
        return f"{host}:{port}"

    def _serve_http(self) -> str:
        uploads = FileUploads(_symbol_settings(self._settings))
        self._closing.callback(uploads.close)
        services = AppServices(
            self._query,
            symbols=SymbolDesk(self._namer, uploads, DebianPackages()),
            health=self._health,
            failing=self._upkeep.failing,
            counters=self._counters,
            kind_totals=self._ingest.kind_totals.totals,
        )
        app = create_app(services)
        host = self._settings.http.rpartition(":")[0]
        try:
            sockets = bound_sockets(self._settings.http)
        except OSError as error:
            raise ServerError(f"cannot listen on {self._settings.http}: {error.strerror}; choose another address with --http") from error
        port = sockets[0].getsockname()[1]
        server = waitress.create_server(app, sockets=sockets, threads=HTTP_THREADS, ident=None, max_request_body_size=MOST_PIECE_BYTES)
        thread = threading.Thread(target=self._run_http, args=(server,), name="http", daemon=True)
        thread.start()
        self._closing.callback(server.close)
        # Last answers first: a thread that ends its task wakes the loop through a descriptor that close closes.
        self._closing.callback(server.task_dispatcher.shutdown, timeout=_GRACE_S)
        return f"{host}:{port}"

    def _run_http(self, server: waitress.server.BaseWSGIServer) -> None:
        try:
            server.run()
        except OSError:
            if not self._is_closing.is_set():  # else its descriptors were closed under it, as intended
                raise

    def _health(self) -> str:
        """Reading the list of agents touches the database without work: when that fails, its sentence says why."""
        try:
            self._store.agents()
        except ServerError as error:
            return str(error)
        return "ok"

    def _counters(self) -> Mapping[str, float]:
        return {
            **self._ingest.counters(),
            "upkeep_failures_total": self._upkeep.failures,
            "names_pending": self._namer.pending(),
            "series_overflowed_total": self._store.overflowed_windows,
            "series_refused_total": self._store.refused("series"),
            "columns_refused_total": self._store.refused("columns"),
        }

    def _keep_up(self) -> None:
        """Drop what is too old, turn batches into blocks, a bounded step at a time; look after names and the index of stacks.

        What is too old goes first: on a full disk it is what makes room for blocks.
        """
        limits = RetireLimits(keep_s=self._settings.retention_days * 86_400, keep_bytes=self._settings.retention_bytes)
        while not self._is_closing.wait(UPKEEP_S):
            self._upkeep.attempt("names", self._namer.tend)
            self._upkeep.attempt("retention", lambda: self._until_done(lambda: self._store.retire(limits, time.time_ns()).is_done))
            self._upkeep.attempt("compaction", lambda: self._until_done(lambda: self._store.compact(time.time_ns()).is_done))
            self._upkeep.attempt("index of stacks", lambda: index_new_stacks(self._query))

    def _watch(self) -> None:
        """Report on deploys and watch shares, a bounded step at a time; by itself, so that a long comparison holds nothing else up."""
        reporter, watch = Reporter(self._query, self._deliverer.announce), Watch(self._query)
        while not self._is_closing.wait(WATCH_S):
            self._upkeep.attempt("reports", lambda: self._until_done(lambda: not reporter.step()))
            self._upkeep.attempt("events", lambda: self._deliverer.announce(watch.step()))

    def _deliver(self) -> None:
        """Tell events to webhooks, which may take their time."""
        while not self._is_closing.wait(DELIVER_S):
            self._upkeep.attempt("webhooks", self._deliverer.step)

    def _until_done(self, step: Callable[[], bool]) -> None:
        while not self._is_closing.is_set() and not step():
            pass


def _hooks(settings: Settings) -> Hooks:
    urls = tuple(url.strip() for url in settings.webhook_urls.split(",") if url.strip())
    return Hooks(urls, settings.webhook_secret, settings.page_url)


def _symbol_settings(settings: Settings) -> SymbolSettings:
    """Raises ConfigError for a debuginfod server that is no address."""
    return SymbolSettings(
        directory=Path(settings.data_dir) / "symbols",
        local_files=settings.local_files,
        debug_roots=tuple(Path(root) for root in settings.debug_roots.split(":") if root),
        table_max_bytes=settings.symbol_tables_bytes,
        files_max_bytes=settings.symbol_files_bytes,
        upload_max_bytes=settings.upload_bytes,
        upstreams=parse_upstreams(settings.debuginfod_urls),
    )


def _made(directory: Path) -> Path:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ServerError(f"cannot use {directory} for data: {error.strerror}; choose another folder with --data-dir") from error
    return directory
