"""The checks that every request passes before the application sees it.

- Host: a server that listens on this machine alone answers only to names of this machine, so a web site that points its
  own name at 127.0.0.1 (DNS rebinding) learns nothing.
- Token: if other machines can reach the server, their requests must carry it.
- Origin: a browser says which site a request comes from; only the server's own page may use the API.
- Read only: a server of a model that must not change passes on requests that ask something, by a list of them.
- Size: a body ends at the limit of its route, whatever its header says. All bodies together are limited too.
- Number: so many requests are answered at once. One counts as soon as its body is complete: who sends slowly, or holds
  an idle connection, takes nobody's place.
"""

from __future__ import annotations

import base64
import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, cookie_parser
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hycal.errors import HyCalError

SHORTEST_TOKEN = 16
OWN_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_API, _PUBLIC = "/api/", "/api/health"
METRICS = "/metrics"
_QUESTIONS = frozenset(
    {f"{_API}{name}" for name in ("classify", "classify-embeddings", "answers", "images", "folders")}
)
_SMALL = 64 * 2**10  # bytes of a body that is received however many bytes others hold

_ALWAYS = {  # headers of every response
    b"cache-control": b"no-store",
    b"content-security-policy": (
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
        b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"referrer-policy": b"no-referrer",
    b"x-content-type-options": b"nosniff",
}


@dataclass(frozen=True)
class Access:
    """Where a server listens, and the token that clients need."""

    host: str = "127.0.0.1"
    token: str | None = None  # None only if the server listens on this machine alone

    def __post_init__(self) -> None:
        if self.token is None and not is_own(self.host):
            raise HyCalError(
                f"Programs on other machines can reach a server on {self.host}, and no token was given. Pass a token."
            )
        if self.token is not None and (len(self.token) < SHORTEST_TOKEN or not self.token.isascii()):
            raise HyCalError(
                f"The token has {len(self.token)} characters; expected {SHORTEST_TOKEN} ASCII characters or more. "
                "Leave it out, and a good one is made."
            )

    @property
    def name(self) -> str:
        """The host as a link has it."""
        return f"[{self.host}]" if ":" in self.host else self.host

    @classmethod
    def safe(cls, host: str, token: str | None) -> Access:
        """Return the access to a host, with a new token if one is needed and none was given."""
        return cls(host, token if token is not None or is_own(host) else secrets.token_urlsafe(24))


def is_own(host: str) -> bool:
    """Whether an address can be reached from this machine alone.

    >>> is_own("localhost"), is_own("127.0.0.1"), is_own("::1"), is_own("0.0.0.0")
    (True, True, True, False)
    """
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Guard:
    """An ASGI application that checks each request, and passes it on to another application.

    `most_bytes` returns the largest body of a request, from its path and its media type. `most_held` are the bytes of
    all bodies that are received or answered at the same time, `most_requests` is how many requests are.
    """

    def __init__(
        self,
        app: ASGIApp,
        access: Access,
        *,
        most_bytes: Callable[[str, str], int],
        most_held: int,
        most_requests: int,
    ) -> None:
        self._app = app
        self._access = access
        self._most_bytes = most_bytes
        self._load = _Load(most_held, most_requests)
        self._names = OWN_NAMES | {access.name} if access.token is None else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse the request, or pass it on."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            headers = Headers(scope=scope)
            most = self._most_bytes(scope["path"], headers.get("content-type", ""))
            refusal = self._refusal(scope, headers, most)
            if refusal is not None:
                await refusal(scope, receive, _with_headers(send))
            else:
                await self._pass_on(scope, _Body(receive, self._load, most), _with_headers(send))

    async def _pass_on(self, scope: Scope, body: _Body, send: Send) -> None:
        try:
            if scope["method"] in _SAFE and scope["path"] != _PUBLIC:
                body.enter()
            await self._app(scope, body.receive, send)
        except HTTPException as error:
            await _refused(error.status_code, error.detail)(scope, body.receive, send)
        except ClientDisconnect:
            pass  # nobody waits for an answer
        finally:
            body.leave()

    def _refusal(self, scope: Scope, headers: Headers, most: int) -> Response | None:
        """Return the response to a request that is not passed on; None for the others."""
        host = ",".join(headers.getlist("host"))  # two of them are no name
        if self._names is not None and _name(host) not in self._names:
            return _refused(403, f"This server does not answer to the name {host!a}. Open it as {self._access.name}.")
        if scope["path"] == _PUBLIC:
            return None
        login = self._log_in(scope)
        if login is not None:
            return login
        if not self._has_token(scope, headers):
            return _refused(401, "This server wants its token: open the link that `hycal serve` printed.")
        guarded = scope["method"] not in _SAFE or scope["path"].startswith((_API, METRICS))
        if guarded and not _from_own_page(headers, host):
            return _refused(403, "Another web site asked for this, so it was not done.")
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > most:
            return _refused(413, _TOO_LARGE.format(most=most))
        return None

    def _log_in(self, scope: Scope) -> Response | None:
        """Return the response to the printed link: it moves the token from the address into a cookie."""
        if scope["path"] != "/" or self._access.token is None:
            return None
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token")
        if not given:
            return None
        if not _same(given[0], self._access.token):
            return _refused(401, "This token is not that of the server. Open the link that `hycal serve` printed.")
        answer = RedirectResponse("/", status_code=303)
        answer.set_cookie(_cookie_name(scope), self._access.token, httponly=True, samesite="strict")
        return answer

    def _has_token(self, scope: Scope, headers: Headers) -> bool:
        if self._access.token is None:
            return True
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "basic":  # all that Label Studio can send; the token is the password
            given = _password(given)
        elif scheme.lower() != "bearer":
            cookies = cookie_parser(headers.get("cookie", ""))  # lenient: cookies of other programs come along
            given = cookies.get(_cookie_name(scope), "")
        return _same(given, self._access.token)


def without_changes(app: ASGIApp) -> ASGIApp:
    """Return `app` for a model that is read only: it gets the requests that ask something, and no others."""

    async def dispatch(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in _SAFE or scope["path"] in _QUESTIONS:
            await app(scope, receive, send)
        else:
            await _refused(403, _READ_ONLY)(scope, receive, send)

    return dispatch


def _name(host: str) -> str:
    """Return the name in a Host header, without its port."""
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdecimal() else host).lower()


def _from_own_page(headers: Headers, host: str) -> bool:
    """Whether a write comes from our page, or from a program other than a browser."""
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site not in (None, "same-origin", "none"):
        return False
    return origin in (None, f"http://{host}", f"https://{host}")


def _cookie_name(scope: Scope) -> str:
    server = scope.get("server")
    return f"hycal-{server[1] if server else 0}"  # cookies are not bound to a port, and two servers have two tokens


def _password(credentials: str) -> str:
    try:
        return base64.b64decode(credentials, validate=True).decode("latin-1").partition(":")[2]
    except ValueError:
        return ""


def _same(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), token.encode())


def _refused(status: int, message: str) -> Response:
    return JSONResponse({"detail": message}, status_code=status)


_READ_ONLY = (
    "This server was started with --read-only, so nothing was changed. Change the model by `hycal learn` or another "
    "command on the machine that has it; this server follows."
)
_TOO_LARGE = "The request is larger than {most:,} bytes. Send less at once."
_TOO_MANY = "{active} requests are being answered, which is the limit. Try again soon."
_TOO_FULL = "The server is receiving {most:,} bytes at once, which is the limit. Try again soon."


@dataclass
class _Load:
    """What all requests hold together, and how much that may be."""

    most_held: int
    most_requests: int
    held: int = 0
    active: int = 0


class _Body:
    """One request: the bytes of its body, and its place among those that are answered."""

    def __init__(self, receive: Receive, load: _Load, most: int) -> None:
        self._receive = receive
        self._load = load
        self._most = most
        self._received = 0
        self._inside = False

    async def receive(self) -> Message:
        """Return the next message. The limits also hold for a body without a length, or with a false one."""
        message = await self._receive()
        size = len(message.get("body", b""))
        self._received += size
        self._load.held += size
        if self._received > self._most:
            raise HTTPException(413, _TOO_LARGE.format(most=self._most))
        if self._load.held > self._load.most_held and self._received > _SMALL:
            raise HTTPException(503, _TOO_FULL.format(most=self._load.most_held))
        if message["type"] == "http.request" and not message.get("more_body", False):
            self.enter()
        return message

    def enter(self) -> None:
        """Take a place among the requests that are answered."""
        if self._inside:
            return
        if self._load.active >= self._load.most_requests:
            raise HTTPException(503, _TOO_MANY.format(active=self._load.active))
        self._load.active += 1
        self._inside = True

    def leave(self) -> None:
        """Give back what the request held."""
        self._load.held -= self._received
        self._load.active -= self._inside


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = list(message.get("headers", ()))
            names = {name.lower() for name, _ in given}
            message["headers"] = given + [header for header in _ALWAYS.items() if header[0] not in names]
        await send(message)

    return sending
