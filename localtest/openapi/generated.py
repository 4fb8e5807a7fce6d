"""Makes calls with the generated client, and prints a line for each: what it
returned, or how it failed.

    python3 generated.py URL case…

A case is the first segment of the path, by which the test knows what to answer.
"""

import json
import sys

from pawl.api.locks import acquire, break_, read, release, renew
from pawl.api.service import healthz, spec
from pawl.client import AuthenticatedClient
from pawl.models import Acquire, Break, Read, Release, Renew

LEASE = {"lock": "orders/42", "lease_id": "6Pz1qXw2Qm6ZV8sJc0aB3g", "token": 7}


def calls(client):
    """All calls, each with what is known of the lease before it."""
    lease = dict(LEASE)

    def acquired():
        answer = acquire.sync_detailed("payments", client=client, body=Acquire(lock="orders/42", ttl_ms=30000))
        if answer.status_code == 201:
            lease.update(lease_id=answer.parsed.lease_id, token=answer.parsed.token)
        return answer

    yield "acquire", acquired
    yield "renew", lambda: renew.sync_detailed("payments", client=client, body=Renew(**lease, ttl_ms=30000))
    yield "read", lambda: read.sync_detailed("payments", client=client, body=Read(lock=lease["lock"]))
    yield "release", lambda: release.sync_detailed("payments", client=client, body=Release(**lease))
    yield "break", lambda: break_.sync_detailed(
        "payments", client=client, body=Break(lock=lease["lock"], token=lease["token"], reason="gone")
    )
    yield "healthz", lambda: healthz.sync_detailed(client=client)
    yield "spec", lambda: spec.sync_detailed(client=client)


url, *cases = sys.argv[1:]
for case in cases:
    for call, make in calls(AuthenticatedClient(base_url=f"{url}/{case}", token="none")):
        line = {"case": case, "call": call}
        try:
            answer = make()
            parsed = answer.parsed.to_dict()
            line |= {"type": type(answer.parsed).__name__, "status": answer.status_code}
            line |= {k: v for k, v in parsed.items() if k in ("code", "message", "state", "new")}
        except Exception as failure:
            line["failed"] = repr(failure)
        print(json.dumps(line))
