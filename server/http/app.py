# SPDX-License-Identifier: Apache-2.0
"""The HTTP application: page, API, health and figures."""

from flask import Flask, Response

from server.http.api import api_blueprint
from server.http.deploys import deploys_blueprint
from server.http.failures import handle_failures
from server.http.metrics import serve_metrics
from server.http.page import page_blueprint
from server.http.reply import dress_replies, json_response
from server.http.saved import saved_blueprint
from server.http.services import AppServices
from server.http.symbols import symbols_blueprint


def create_app(services: AppServices) -> Flask:
    """Make a WSGI application that answers from `services`."""
    app = Flask(__name__, static_folder=None)
    app.url_map.merge_slashes = False
    handle_failures(app)
    dress_replies(app)
    serve_metrics(app, services)
    app.register_blueprint(api_blueprint(services))
    app.register_blueprint(deploys_blueprint(services))
    app.register_blueprint(saved_blueprint(services))
    if services.symbols is not None:
        app.register_blueprint(symbols_blueprint(services.query, services.symbols))
    app.register_blueprint(page_blueprint(services))

    @app.get("/healthz")
    def health() -> Response:
        status, failing = services.health(), services.failing()
        return json_response({"status": status} | ({"failing": failing} if failing else {}), 200 if status == "ok" else 503)

    return app
