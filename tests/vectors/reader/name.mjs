// The grammar of names. All of them are ASCII, so comparing strings compares bytes.
const SEGMENT = /^[A-Za-z0-9][A-Za-z0-9._-]*$/;
const ROLLOUT = /^[A-Za-z0-9][A-Za-z0-9._-]{0,255}$/;
const WITH_ATTEMPT = /^(.*)-a([1-9][0-9]*)$/;

export const isDigest = (text) => /^[0-9a-f]{64}$/.test(text);

// The `u` flag makes it count code points.
export const isLabel = (text) => /^[^\u0000-\u001f\u007f-\u009f]{1,256}$/u.test(text);

export const isParticipant = (text) => text.length <= 128 && text.split('/').every((part) => SEGMENT.test(part));

export const isCut = (text) => isParticipant(text) && !text.includes('/');

export const isRollout = (text) => ROLLOUT.test(text) && !WITH_ATTEMPT.test(text);

// The rollout and the attempt of a capture key, or null when the text is none.
export function episodeOf(key) {
  const [, rollout, attempt] = WITH_ATTEMPT.exec(key) ?? [key, key, '0'];
  return attempt.length <= 9 && isRollout(rollout) ? { rollout, attempt: BigInt(attempt) } : null;
}
