# SPDX-License-Identifier: Apache-2.0
"""The server's own figures for Prometheus, in a registry of the app's own."""

import time
from collections.abc import Iterator

from flask import Flask, Response, g, request
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from server.http.services import AppServices

_BUCKETS_S = (0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_PREFIX = "emberwatch_"


class _Figures(Collector):
    """What other parts of the server count."""

    def __init__(self, services: AppServices) -> None:
        self._services = services

    def collect(self) -> Iterator[Metric]:
        """Ask for the figures of now."""
        agents = self._services.query.store.agents()
        yield GaugeMetricFamily(f"{_PREFIX}agents", "Agents ever seen.", value=len(agents))
        for name, value in sorted(self._services.counters().items()):
            words = f"{name.removesuffix('_total').replace('_', ' ').capitalize()}."
            family = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
            yield family(_PREFIX + name, words, value=value)
        for (kind, column), by_service in sorted(self._services.kind_totals().items()):
            total = CounterMetricFamily(f"{_PREFIX}{kind}_{column}", f"Sum of column {column} of kind {kind}.", labels=("service",))
            for service, amount in sorted(by_service.items()):
                total.add_metric((service,), amount)
            yield total


def serve_metrics(app: Flask, services: AppServices) -> None:
    """Count the app's requests and serve /metrics."""
    registry = CollectorRegistry(auto_describe=False)
    requests = Counter(f"{_PREFIX}http_requests", "Requests answered.", ("route", "status"), registry=registry)
    duration = Histogram(f"{_PREFIX}http_seconds", "Time to answer.", ("route",), buckets=_BUCKETS_S, registry=registry)
    registry.register(_Figures(services))

    @app.before_request
    def start() -> None:
        g.started_s = time.perf_counter()

    @app.after_request
    def count(response: Response) -> Response:
        route = request.url_rule.rule if request.url_rule else "none"
        requests.labels(route, str(response.status_code)).inc()
        duration.labels(route).observe(time.perf_counter() - g.get("started_s", time.perf_counter()))
        return response

    @app.get("/metrics")
    def metrics() -> Response:
        return Response(generate_latest(registry), content_type="text/plain; version=0.0.4; charset=utf-8")
