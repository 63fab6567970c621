// What JSON cannot hold, put in place of the nulls that stand for it.
import { Dict } from './dict.mjs';
import { NESTING, VALUES } from './limits.mjs';
import { isObject, isString } from './member.mjs';
import { damaged } from './refusal.mjs';
import { textOf } from './text.mjs';

const DOUBLES = new Map([['nan', NaN], ['inf', Infinity], ['-inf', -Infinity]]);
const HEX = /^(-?)([1-9a-f][0-9a-f]*)$/;

// The exact value of a payload and its patches.
export function patched(payload, patches) {
  let root = payload;
  for (const patch of patches) {
    const [path, places] = pairOf(patch);
    if (!Array.isArray(places)) throw damaged('a patch without places');
    if (path === null) {
      root = places.reduce(patchedRoot, root);
    } else {
      if (!Array.isArray(path)) throw damaged('a patch without path');
      const container = path.reduce((value, key) => placeIn(value, key).value, root);
      for (const place of places) putIn(container, ...pairOf(place));
    }
  }
  checkLimits(root);
  return root;
}

function patchedRoot(root, place) {
  const [key, value] = pairOf(place);
  if (key !== null || root !== null) throw damaged('a patch of a payload that is not null');
  return valueOf(value);
}

function putIn(container, key, value) {
  const place = placeIn(container, key);
  if (place.value !== null) throw damaged('a patch of a place that is not null');
  place.put(valueOf(value));
}

// A place that is in a container, what it holds, and how to change that.
function placeIn(container, key) {
  if (Array.isArray(container)) {
    if (typeof key !== 'bigint' || key < 0n || key >= container.length) {
      throw damaged('a patch of no place in an array');
    }
    const index = Number(key);
    return { value: container[index], put: (value) => { container[index] = value; } };
  }
  if (!isObject(container)) throw damaged('a patch in what is no container');
  const name = keyOf(key);
  if (!container.has(name)) throw damaged('a patch of no place in an object');
  return { value: container.get(name), put: (value) => container.set(name, value) };
}

function valueOf(value) {
  if (isString(value) && DOUBLES.has(value)) return DOUBLES.get(value);
  const [[name, content]] = formOf(value);
  if (name === 'int') return integerOf(content);
  if (name === 'str') return stringOf(content);
  if (name === 'pairs') return objectOf(content);
  throw damaged(`a patch with ${name}`);
}

function integerOf(content) {
  const match = isString(content) ? HEX.exec(content) : null;
  if (match === null) throw damaged('a patch with no integer');
  const magnitude = BigInt(`0x${match[2]}`);
  return match[1] ? -magnitude : magnitude;
}

function stringOf(content) {
  const isPoint = (point) => typeof point === 'bigint' && point >= 0n && point <= 0x10ffffn;
  if (!Array.isArray(content) || !content.every(isPoint)) throw damaged('a patch with no string');
  return textOf(content.map(Number));
}

function objectOf(content) {
  if (!Array.isArray(content)) throw damaged('a patch with no object');
  const object = new Dict();
  for (const pair of content) {
    const [key, value] = pairOf(pair);
    const name = keyOf(key);
    if (object.has(name)) throw damaged('a key twice in an object');
    object.set(name, value);
  }
  return object;
}

function keyOf(key) {
  if (isString(key)) return key;
  const [[name, content]] = formOf(key);
  if (name !== 'str') throw damaged('a patch with no key');
  return stringOf(content);
}

function formOf(value) {
  if (!isObject(value) || value.size !== 1) throw damaged('a patch with no such value');
  return value.entries();
}

function pairOf(value) {
  if (!Array.isArray(value) || value.length !== 2) throw damaged('a patch is a list of pairs');
  return value;
}

// Patches can put containers into containers, so only the whole value shows how deep and how large it is.
function checkLimits(root) {
  let values = 0;
  const check = (value, depth) => {
    const items = Array.isArray(value) ? value : isObject(value) ? value.entries().map((entry) => entry[1]) : null;
    if (items === null) return;
    if (depth > NESTING) throw damaged(`nested deeper than ${NESTING}`);
    values += items.length;
    if (values > VALUES) throw damaged(`more than ${VALUES} values`);
    for (const item of items) check(item, depth + 1);
  };
  check(root, 1);
}
