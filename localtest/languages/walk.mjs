// Takes, keeps and gives up a lock from Node, with signed requests and nothing
// but what comes with it.
//
//   PAWL_URL=http://127.0.0.1:8080 AWS_ACCESS_KEY_ID=… AWS_SECRET_ACCESS_KEY=… node walk.mjs

import { createHash, createHmac, randomBytes } from 'node:crypto';

const { PAWL_URL, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION = 'us-east-1' } = process.env;

const sha256 = (text) => createHash('sha256').update(text).digest('hex');
const hmac = (key, text) => createHmac('sha256', key).update(text).digest();

// sign returns the headers of a request with AWS Signature Version 4.
function sign(method, url, body) {
  const stamp = new Date().toISOString().replace(/[-:]|\.\d+/g, '');
  const headers = { host: url.host, 'x-amz-date': stamp };
  if (AWS_SESSION_TOKEN) headers['x-amz-security-token'] = AWS_SESSION_TOKEN;
  const names = Object.keys(headers).sort();
  const request = [
    method,
    url.pathname,
    url.search.slice(1).split('&').sort().join('&'),
    ...names.map((name) => `${name}:${headers[name]}`),
    '',
    names.join(';'),
    sha256(body),
  ].join('\n');
  const scope = `${stamp.slice(0, 8)}/${AWS_REGION}/execute-api/aws4_request`;
  const key = scope.split('/').reduce(hmac, `AWS4${AWS_SECRET_ACCESS_KEY}`);
  const signature = hmac(key, `AWS4-HMAC-SHA256\n${stamp}\n${scope}\n${sha256(request)}`).toString('hex');
  headers.authorization = `AWS4-HMAC-SHA256 Credential=${AWS_ACCESS_KEY_ID}/${scope}, SignedHeaders=${names.join(';')}, Signature=${signature}`;
  delete headers.host; // fetch adds it
  return headers;
}

// call makes one call and returns the status and the answer.
async function call(method, path, body) {
  const url = new URL(path, PAWL_URL);
  const text = body === undefined ? '' : JSON.stringify(body);
  const answer = await fetch(url, {
    method,
    headers: sign(method, url, text),
    body: text || undefined,
    signal: AbortSignal.timeout(30_000),
  });
  return [answer.status, await answer.json()];
}

// With an id of its own, an acquire can be repeated after a timeout.
const acquire = (lock, holder, more) =>
  call('POST', '/v1/payments/acquire', { lock, holder, request_id: randomBytes(16).toString('base64url'), ...more });

const lock = 'orders/42 é';
let [status, lease] = await acquire(lock, 'worker-1', { ttl_ms: 30000 });
console.log(status, 'acquired');
const named = { lock, lease_id: lease.lease_id, token: lease.token };

let answer;
[status, answer] = await acquire(lock, 'worker-2', { ttl_ms: 30000 });
console.log(status, answer.code, 'by', answer.holder);

[status] = await call('POST', '/v1/payments/renew', { ...named, ttl_ms: 30000 });
console.log(status, 'renewed');

[status, answer] = await call('POST', '/v1/payments/read', { lock });
console.log(status, answer.state, 'by', answer.holder);

[status] = await call('POST', '/v1/payments/release', named);
console.log(status, 'released');

[status, lease] = await acquire(lock, 'worker-2', { ttl_ms: 1000 });
console.log(status, 'acquired with a larger token:', lease.token > named.token);

[status, lease] = await acquire(lock, 'worker-3', { ttl_ms: 30000, wait_ms: 5000 });
console.log(status, 'acquired, abandoned by', lease.abandoned.holder);
