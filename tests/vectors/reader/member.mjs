// Members of objects, each checked for its exact type.
import { Dict } from './dict.mjs';
import { episodeOf, isDigest, isLabel } from './name.mjs';
import { damaged } from './refusal.mjs';

const LARGEST = 2n ** 63n - 1n;

// The member of an object, which has to be there and pass the test.
export function member(object, name, test) {
  if (!object.has(name)) throw damaged(`no member ${name}`);
  const value = object.get(name);
  if (!test(value)) throw damaged(`member ${name} is not as it has to be`);
  return value;
}

export const isString = (value) => typeof value === 'string';
export const isObject = (value) => value instanceof Dict;
export const isInteger = (value) => typeof value === 'bigint' && value >= 0n && value <= LARGEST;
export const isPositive = (value) => isInteger(value) && value > 0n;
export const isBoundary = (value) => value === null || isInteger(value);
export const isDigestText = (value) => isString(value) && isDigest(value);
export const isLabelText = (value) => isString(value) && isLabel(value);
export const isCaptureKey = (value) => isString(value) && episodeOf(value) !== null;
export const isArrayOf = (test) => (value) => Array.isArray(value) && value.every(test);

// A size or a place in a file. One beyond 2^53 loses digits here, and no file that it could fit.
export const size = (object, name, test = isInteger) => Number(member(object, name, test));
export const sizes = (object, name) => member(object, name, isArrayOf(isInteger)).map(Number);
