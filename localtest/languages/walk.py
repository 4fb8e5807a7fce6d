"""Takes, keeps and gives up a lock from Python, with signed requests and nothing
but the standard library.

    PAWL_URL=http://127.0.0.1:8080 AWS_ACCESS_KEY_ID=… AWS_SECRET_ACCESS_KEY=… python3 walk.py
"""

import datetime
import hashlib
import hmac
import json
import os
import secrets
import urllib.error
import urllib.parse
import urllib.request

URL = os.environ["PAWL_URL"].rstrip("/")
REGION = os.environ.get("AWS_REGION", "us-east-1")


def sign(method, url, body):
    """Returns the headers of a request with AWS Signature Version 4."""
    parts = urllib.parse.urlsplit(url)
    stamp = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    headers = {"host": parts.netloc, "x-amz-date": stamp}
    if token := os.environ.get("AWS_SESSION_TOKEN"):
        headers["x-amz-security-token"] = token
    names = ";".join(sorted(headers))
    query = "&".join(sorted(parts.query.split("&")))
    request = "\n".join(
        [method, urllib.parse.quote(parts.path), query]
        + [f"{name}:{headers[name]}" for name in sorted(headers)]
        + ["", names, hashlib.sha256(body).hexdigest()]
    )
    scope = f"{stamp[:8]}/{REGION}/execute-api/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
    key = ("AWS4" + os.environ["AWS_SECRET_ACCESS_KEY"]).encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    headers["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={os.environ['AWS_ACCESS_KEY_ID']}/{scope}, SignedHeaders={names}, Signature={signature}"
    )
    return headers


def call(method, path, body=None):
    """Makes one call and returns the status and the answer."""
    data = b"" if body is None else json.dumps(body).encode()
    request = urllib.request.Request(URL + path, data or None, sign(method, URL + path, data), method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refusal:
        return refusal.code, json.load(refusal)


def acquire(lock, holder, **more):
    # With an id of its own, this request can be repeated after a timeout.
    return call("POST", "/v1/payments/acquire", {"lock": lock, "holder": holder, "request_id": secrets.token_urlsafe(16), **more})


lock = "orders/42 é"
status, lease = acquire(lock, "worker-1", ttl_ms=30000)
print(status, "acquired")
named = {"lock": lock, "lease_id": lease["lease_id"], "token": lease["token"]}

status, problem = acquire(lock, "worker-2", ttl_ms=30000)
print(status, problem["code"], "by", problem["holder"])

status, lease = call("POST", "/v1/payments/renew", {**named, "ttl_ms": 30000})
print(status, "renewed")

status, state = call("POST", "/v1/payments/read", {"lock": lock})
print(status, state["state"], "by", state["holder"])

status, state = call("POST", "/v1/payments/release", named)
print(status, "released")

status, lease = acquire(lock, "worker-2", ttl_ms=1000)
print(status, "acquired with a larger token:", lease["token"] > named["token"])

status, lease = acquire(lock, "worker-3", ttl_ms=30000, wait_ms=5000)
print(status, "acquired, abandoned by", lease["abandoned"]["holder"])
