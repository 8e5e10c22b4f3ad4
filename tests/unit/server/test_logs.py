"""Lines of the log, for people and for programs."""

from __future__ import annotations

import json
import logging

from omnigraph_core.server.logs import JsonLines, TextLines


def record(message: str, **facts: object) -> logging.LogRecord:
    return logging.makeLogRecord(
        {"name": "omnigraph.access", "levelname": "INFO", "msg": message, "created": 0.0, **facts}
    )


def test_json_lines_hold_the_facts() -> None:
    line = JsonLines().format(record("request", status=200, actor="zoë\nx"))
    assert json.loads(line) == {
        "time": "1970-01-01T00:00:00.000+00:00",
        "level": "info",
        "logger": "omnigraph.access",
        "message": "request",
        "status": 200,
        "actor": "zoë\nx",
    }
    assert "\n" not in line


def test_text_lines_cannot_be_forged() -> None:
    line = TextLines().format(record("a\nb", path="/x\n2031 info forged", actor="", ms=1.5))
    assert line == (
        "1970-01-01T00:00:00.000+00:00 info omnigraph.access: a\\nb "
        'path="/x\\n2031 info forged" actor= ms=1.5'
    )


def test_a_trace_is_told() -> None:
    try:
        raise ValueError("broken")
    except ValueError as error:
        told = record("failed", exc_info=(ValueError, error, error.__traceback__))
    assert "ValueError: broken" in TextLines().format(told)
    assert "ValueError: broken" in json.loads(JsonLines().format(told))["trace"]
