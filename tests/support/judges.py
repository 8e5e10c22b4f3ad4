"""Judges that decide without rules, and remember what they were asked."""

from __future__ import annotations

from dataclasses import dataclass, field

from omnigraph_core.policy.model import Decision, Request


@dataclass
class Recorder:
    """Allows everything, or nothing; only some actions are denied if they are named."""

    is_allowing: bool
    denied: frozenset[str] = frozenset()
    asked: list[Request] = field(default_factory=list)

    def decide(self, request: Request) -> Decision:
        self.asked.append(request)
        is_allowed = self.is_allowing and request.action not in self.denied
        rule = "everything" if is_allowed else None
        return Decision(request, is_allowed, rule, "as told")
