"""Who calls: bearer tokens come in at the start of a server, an actor for each request goes out.

A token is kept as its SHA-256 digest only and compared with every digest there is, so that the time
an answer takes tells nothing. No token is ever in a message, a log or a `repr`.
"""

from __future__ import annotations

import hashlib
import hmac
import importlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from omnigraph_core import settings as environment
from omnigraph_core.errors import ConfigError, Unauthenticated
from omnigraph_core.manifest.names import check_actor
from omnigraph_core.server import settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_PREFIX: Final = b"Bearer "
_DEFAULT_ACTOR: Final = "default"
_SHAPE: Final = 'give a JSON object, actor to token: {"ada": "…", "bob": "…"}'


class Tokens:
    """The actors of a server and the digests of their tokens."""

    __slots__ = ("_digests",)

    def __init__(self, tokens: Iterable[tuple[str, str]] = ()) -> None:
        """
        Raises:
            ConfigError: blank, repeated or impossible actors or tokens; tells all of them.
        """
        pairs = [(actor.strip(), token.strip()) for actor, token in tokens]
        problems = list(_problems(pairs))
        if problems:
            raise ConfigError("the bearer tokens cannot be used:\n" + "\n".join(problems))
        self._digests = tuple((actor, _digest(token.encode())) for actor, token in pairs)

    def __len__(self) -> int:
        return len(self._digests)

    def __repr__(self) -> str:
        return f"<Tokens of {len(self)} actors>"

    def actor_of(self, authorization: bytes | None) -> str:
        """The actor whose token a request carries in its `Authorization` header.

        Raises:
            Unauthenticated: it carries none, or none that is known.
        """
        if authorization is None or not authorization.startswith(_PREFIX):
            raise Unauthenticated("missing bearer token")
        given = _digest(authorization[len(_PREFIX) :])
        found = None
        for actor, known in self._digests:  # all of them, whichever it is
            if hmac.compare_digest(given, known):
                found = actor
        if found is None:
            raise Unauthenticated("invalid bearer token")
        return found


def read_tokens() -> Tokens:
    """The tokens the environment names: of a secret of AWS alone; else the single one and those of
    a file, or of a text if there is no file.

    A source that is named and gives no token is a mistake: taken for none, it would open the server
    to everybody.

    Raises:
        ConfigError: a source cannot be read, is wrong or is blank.
    """
    _refuse_blank()
    secret = settings.TOKENS_AWS_SECRET.read()
    if secret is not None:
        return Tokens(_pairs(_aws_secret(secret), settings.TOKENS_AWS_SECRET.name))
    single = settings.TOKEN.read()
    pairs = [] if single is None else [(_DEFAULT_ACTOR, single)]
    path, text = settings.TOKENS_FILE.read(), settings.TOKENS_JSON.read()
    if path is not None:
        pairs += _pairs(_file(Path(path)), settings.TOKENS_FILE.name)
    elif text is not None:
        pairs += _pairs(text, settings.TOKENS_JSON.name)
    return Tokens(pairs)


def _refuse_blank() -> None:
    sources = (
        settings.TOKENS_AWS_SECRET,
        settings.TOKEN,
        settings.TOKENS_FILE,
        settings.TOKENS_JSON,
    )
    given = {source.name: environment.text(source.name) for source in sources}
    blank = [name for name, text in given.items() if text is not None and not text.strip()]
    if blank:
        raise ConfigError(
            f"set, but blank: {', '.join(blank)}",
            hint="give it a value; to have no bearer tokens, unset it",
        )


def _digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()


def _problems(pairs: list[tuple[str, str]]) -> Iterator[str]:
    actors: set[str] = set()
    owners: dict[str, str] = {}
    for actor, token in pairs:
        if (problem := _actor_problem(actor)) is not None:
            yield problem
            continue
        if actor in actors:
            yield f"the actor `{actor}` has two tokens"
        if not token:
            yield f"the token of `{actor}` is blank"
        elif not _is_text(token):
            yield f"the token of `{actor}` is not Unicode text"
        elif token in owners:
            yield f"`{owners[token]}` and `{actor}` have the same token"
        actors.add(actor)
        owners.setdefault(token, actor)


def _actor_problem(actor: str) -> str | None:
    if not actor:
        return "an actor without a name"
    try:
        check_actor(actor)
    except ConfigError as problem:
        return problem.message
    return None


def _is_text(token: str) -> bool:
    try:
        token.encode()
    except UnicodeEncodeError:
        return False
    return True


def _pairs(text: str, source: str) -> list[tuple[str, str]]:
    try:
        # As pairs: an object would hide that an actor stands there twice.
        found = json.loads(text, object_pairs_hook=_Pairs)
    except ValueError:
        found = None  # what the parser has to say may quote a token
    except RecursionError:
        found = None
    if not isinstance(found, _Pairs) or not all(isinstance(token, str) for _, token in found):
        raise ConfigError(f"{source}: not an object of tokens", hint=_SHAPE)
    if not found:
        raise ConfigError(f"{source}: no tokens in it", hint=_SHAPE)
    return list(found)


class _Pairs(list[tuple[str, Any]]):
    """The members of a JSON object in order."""


def _file(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as problem:
        raise ConfigError(
            f"{settings.TOKENS_FILE.name}: cannot read {path}: {problem.strerror}"
        ) from problem
    except UnicodeDecodeError as problem:
        raise ConfigError(f"{settings.TOKENS_FILE.name}: {path} is not UTF-8 text") from problem


def _aws_secret(name: str) -> str:
    setting = settings.TOKENS_AWS_SECRET.name
    try:
        boto3 = importlib.import_module("boto3")
        failures = importlib.import_module("botocore.exceptions")
    except ModuleNotFoundError as missing:
        raise ConfigError(
            f"{setting} is set, and boto3 is not installed", hint="pip install 'omnigraph[aws]'"
        ) from missing
    try:
        # A session of its own: the default one is the process's, with what others have set there.
        session = boto3.session.Session(region_name=environment.AWS_REGION.read())
        client = session.client("secretsmanager")
        answer = client.get_secret_value(SecretId=name)
    except (failures.BotoCoreError, failures.ClientError) as problem:
        raise ConfigError(f"{setting}: cannot read the secret {name}: {problem}") from problem
    text = answer.get("SecretString")
    if not isinstance(text, str):
        raise ConfigError(f"{setting}: the secret {name} holds no text", hint=_SHAPE)
    return text
