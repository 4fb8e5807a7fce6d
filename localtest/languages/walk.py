"""Takes, keeps and gives up a lock from Python, with nothing but the standard
library. Requests are signed with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, if
they are set. It ends with 1, and what the service said, when that is no yes.

    python3 walk.py http://127.0.0.1:8080 [namespace [lock]]
"""

import datetime
import hashlib
import hmac
import http.client
import json
import os
import secrets
import sys
import urllib.error
import urllib.parse
import urllib.request

if not 2 <= len(sys.argv) <= 4:
    sys.exit(__doc__)
URL = sys.argv[1].rstrip("/")
NAMESPACE = sys.argv[2] if len(sys.argv) > 2 else "payments"
LOCK = sys.argv[3] if len(sys.argv) > 3 else "orders/é " + secrets.token_hex(8)  # nobody else's
KEY, SECRET = os.environ.get("AWS_ACCESS_KEY_ID"), os.environ.get("AWS_SECRET_ACCESS_KEY")
REGION = os.environ.get("AWS_REGION", "us-east-1")


def sign(url, body):
    """Returns the headers of a POST with AWS Signature Version 4."""
    if not KEY or not SECRET:
        return {}
    parts = urllib.parse.urlsplit(url)
    stamp = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    headers = {"host": parts.netloc, "x-amz-date": stamp}
    if token := os.environ.get("AWS_SESSION_TOKEN"):
        headers["x-amz-security-token"] = token
    names = ";".join(sorted(headers))
    request = "\n".join(
        ["POST", urllib.parse.quote(parts.path), ""]
        + [f"{name}:{headers[name]}" for name in sorted(headers)]
        + ["", names, hashlib.sha256(body).hexdigest()]
    )
    scope = f"{stamp[:8]}/{REGION}/execute-api/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
    key = ("AWS4" + SECRET).encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    headers["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={KEY}/{scope}, SignedHeaders={names}, Signature={signature}"
    )
    return headers


def call(action, want, **body):
    """Makes a call that must be answered with the status want; returns the answer."""
    url, data = f"{URL}/v1/{NAMESPACE}/{action}", json.dumps(body).encode()
    headers = {**sign(url, data), "content-type": "application/json"}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=30) as answer:
            status, text = answer.status, answer.read()
    except urllib.error.HTTPError as refusal:
        status, text = refusal.code, refusal.read()
    except (OSError, http.client.HTTPException) as failure:
        # The call may have been carried out. A program that goes on repeats it, an
        # acquire with the same request id.
        sys.exit(f"{action}: no answer: {failure}")
    if status != want:
        sys.exit(f"{action}: {status} instead of {want}: {text.decode(errors='replace')}")
    return json.loads(text)


def acquire(want, holder, **more):
    # With an id of its own, an acquire can be repeated after a timeout.
    return call("acquire", want, lock=LOCK, holder=holder, request_id=secrets.token_urlsafe(16), **more)


def of(lease):
    return {"lock": LOCK, "lease_id": lease["lease_id"], "token": lease["token"]}


first = acquire(201, "worker-1", ttl_ms=30000)
print("acquired")

problem = acquire(409, "worker-2", ttl_ms=30000)
print(problem["code"], "by", problem["holder"])

call("renew", 200, **of(first), ttl_ms=30000)
print("renewed")

state = call("read", 200, lock=LOCK)
print(state["state"], "by", state["holder"])

call("release", 200, **of(first))
print("released")

second = acquire(201, "worker-2", ttl_ms=1000)
print("acquired with a larger token:", "yes" if second["token"] > first["token"] else "no")

third = acquire(201, "worker-3", ttl_ms=30000, wait_ms=5000)
print("acquired, abandoned by", third["abandoned"]["holder"])

call("release", 200, **of(third))
print("released")
