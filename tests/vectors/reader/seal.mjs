// Files that state the digest of their own body.
import { digestOf } from './digest.mjs';
import { withFile } from './file.mjs';
import { decode, parse } from './json.mjs';
import { isArrayOf, isObject, isString, member } from './member.mjs';
import { isDigest } from './name.mjs';
import { damaged, unsupported } from './refusal.mjs';

const BEFORE_DIGEST = '{"sha256":"';
const BEFORE_BODY = '","body":';
const AFTER_BODY = '}\n';
const DIGEST_END = BEFORE_DIGEST.length + 64;
const BODY_START = DIGEST_END + BEFORE_BODY.length;

// The digest and the body of a self-checked file. The digest is checked before anything parses the body.
export function unseal(bytes) {
  const digest = bytes.toString('latin1', BEFORE_DIGEST.length, DIGEST_END);
  const body = bytes.subarray(BODY_START, -AFTER_BODY.length);
  const framed = bytes.length > BODY_START + AFTER_BODY.length
    && bytes.toString('latin1', 0, BEFORE_DIGEST.length) === BEFORE_DIGEST
    && isDigest(digest)
    && bytes.toString('latin1', DIGEST_END, BODY_START) === BEFORE_BODY
    && bytes.toString('latin1', bytes.length - AFTER_BODY.length) === AFTER_BODY;
  if (!framed) throw damaged('no self-checked file');
  if (digestOf(body) !== digest) throw damaged('the body has another digest');
  const object = parse(decode(body));
  if (!isObject(object)) throw damaged('the body is no object');
  return { digest, body: object };
}

export function readSealed(path, limit) {
  return withFile(path, (file) => {
    if (file.size > limit) throw damaged(`${path}: larger than ${limit} bytes`);
    return unseal(file.read(0, file.size));
  });
}

// Comes before any other member is looked at: in another format they may mean something else.
export function checkFormat(body) {
  const format = body.get('format');
  if (format !== 1n) throw unsupported(`format ${format} found, this reader reads 1`);
  const features = member(body, 'features', isArrayOf(isString));
  if (features.length > 0) throw unsupported(`features ${features} found, this reader knows none`);
}
