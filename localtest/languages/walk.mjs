// Takes, keeps and gives up a lock from Node, with nothing but what comes with it.
// Requests are signed with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, if they are
// set. It ends with 1, and what the service said, when that is no yes.
//
//   node walk.mjs http://127.0.0.1:8080 [namespace [lock]]

import { createHash, createHmac, randomBytes } from 'node:crypto';

const [base, namespace = 'payments', lock = `orders/é ${randomBytes(8).toString('hex')}`] = process.argv.slice(2); // nobody else's
const { AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION = 'us-east-1' } = process.env;

const sha256 = (text) => createHash('sha256').update(text).digest('hex');
const hmac = (key, text) => createHmac('sha256', key).update(text).digest();

// end says why there is nothing more to do.
function end(text) {
  console.error(text);
  process.exit(1);
}

if (!base || process.argv.length > 5) end('node walk.mjs http://127.0.0.1:8080 [namespace [lock]]');

// sign returns the headers of a POST with AWS Signature Version 4.
function sign(url, body) {
  if (!AWS_ACCESS_KEY_ID || !AWS_SECRET_ACCESS_KEY) return {};
  const stamp = new Date().toISOString().replace(/[-:]|\.\d+/g, '');
  const headers = { host: url.host, 'x-amz-date': stamp };
  if (AWS_SESSION_TOKEN) headers['x-amz-security-token'] = AWS_SESSION_TOKEN;
  const names = Object.keys(headers).sort();
  const request = [
    'POST',
    url.pathname,
    '',
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

// call makes a call that must be answered with the status want, and returns the answer.
async function call(action, want, body) {
  const url = new URL(`${base.replace(/\/$/, '')}/v1/${namespace}/${action}`);
  const text = JSON.stringify(body);
  const headers = { ...sign(url, text), 'content-type': 'application/json' };
  let status, answer;
  try {
    const got = await fetch(url, { method: 'POST', headers, body: text, signal: AbortSignal.timeout(30_000) });
    [status, answer] = [got.status, await got.text()];
  } catch (failure) {
    // The call may have been carried out. A program that goes on repeats it, an
    // acquire with the same request id.
    end(`${action}: no answer: ${failure.cause?.message ?? failure.message}`);
  }
  if (status !== want) end(`${action}: ${status} instead of ${want}: ${answer}`);
  return JSON.parse(answer);
}

// With an id of its own, an acquire can be repeated after a timeout.
const acquire = (want, holder, more) =>
  call('acquire', want, { lock, holder, request_id: randomBytes(16).toString('base64url'), ...more });

const of = (lease) => ({ lock, lease_id: lease.lease_id, token: lease.token });

const first = await acquire(201, 'worker-1', { ttl_ms: 30000 });
console.log('acquired');

const problem = await acquire(409, 'worker-2', { ttl_ms: 30000 });
console.log(problem.code, 'by', problem.holder);

await call('renew', 200, { ...of(first), ttl_ms: 30000 });
console.log('renewed');

const state = await call('read', 200, { lock });
console.log(state.state, 'by', state.holder);

await call('release', 200, of(first));
console.log('released');

const second = await acquire(201, 'worker-2', { ttl_ms: 1000 });
console.log('acquired with a larger token:', second.token > first.token ? 'yes' : 'no');

const third = await acquire(201, 'worker-3', { ttl_ms: 30000, wait_ms: 5000 });
console.log('acquired, abandoned by', third.abandoned.holder);

await call('release', 200, of(third));
console.log('released');
