// Exact values: a payload as parsed, with its patches put in place.
//
// A string with surrogates is a Points, because a JavaScript string cannot tell U+D83D U+DE00 from U+1F600. Keys of a Map are
// strings; one with surrogates is spelled as NUL and its code points, and a real NUL at the start of a key is doubled.

import { Fields, damaged, parse } from './json.mjs';

const DEPTH = 250;
const PATCH_DEPTH = 1000; // of the text of the patches, which can be nested deeper than what they stand for

export class Points {
  constructor(points) {
    this.points = points;
  }
}

export function readValue(bytes, patchBytes) {
  const value = ours(parse(bytes, DEPTH));
  return patchBytes === null ? value : patched(value, parse(patchBytes, PATCH_DEPTH));
}

/** A value as parsed, with the keys of its objects spelled in our way. */
export function ours(value) {
  if (Array.isArray(value)) return value.map(ours);
  if (!(value instanceof Map)) return value;
  return new Map([...value].map(([key, each]) => [mapKey(key), ours(each)]));
}

const mapKey = (key) => (typeof key === 'string' ? (key.startsWith('\0') ? '\0' + key : key) : `\0${key.points}`);

export function patched(value, patches) {
  if (!Array.isArray(patches) || patches.length === 0) throw damaged('patches are no list, or empty');
  const holder = [value];
  for (const patch of patches) {
    const [path, entries] = pair(patch);
    if (path !== null && !Array.isArray(path)) throw damaged('a path is no array');
    if (!Array.isArray(entries)) throw damaged('entries are no array');
    let container = holder;
    if (path !== null) container = path.reduce((at, step) => get(at, step), holder[0]);
    for (const entry of entries) {
      const [key, form] = pair(entry);
      if ((path === null) !== (key === null)) throw damaged('a key and a path that do not fit');
      const place = key === null ? 0n : key;
      if (get(container, place) !== null) throw damaged('a patch of what is not null');
      put(container, place, fromForm(form));
    }
  }
  if (depth(holder[0]) > DEPTH) throw damaged('nested too deep');
  return holder[0];
}

function pair(value) {
  if (!Array.isArray(value) || value.length !== 2) throw damaged('not an array of two');
  return value;
}

function keyOf(container, step) {
  if (typeof step === 'bigint') {
    if (!Array.isArray(container) || step < 0n || step >= BigInt(container.length)) throw damaged('no such index');
    return Number(step);
  }
  const key = mapKey(typeof step === 'string' ? step : onlyString(step));
  if (!(container instanceof Map) || !container.has(key)) throw damaged('no such key');
  return key;
}

function get(container, step) {
  const key = keyOf(container, step);
  return Array.isArray(container) ? container[key] : container.get(key);
}

function put(container, step, value) {
  const key = keyOf(container, step);
  if (Array.isArray(container)) container[key] = value;
  else container.set(key, value);
}

function onlyMember(form) {
  if (!(form instanceof Map) || form.size !== 1) throw damaged('an unknown form');
  return [...form][0];
}

function onlyString(form) {
  const [kind, points] = onlyMember(form);
  if (kind !== 'str') throw damaged('a key of another kind');
  return fromPoints(points);
}

function fromPoints(points) {
  new Fields(new Map([['str', points]])).integers('str', 0n, 0x10ffffn);
  const surrogate = points.some((point) => point >= 0xd800n && point <= 0xdfffn);
  return surrogate ? new Points(points.map(Number)) : points.map((point) => String.fromCodePoint(Number(point))).join('');
}

function fromForm(form) {
  if (form === 'nan') return NaN;
  if (form === 'inf') return Infinity;
  if (form === '-inf') return -Infinity;
  const [kind, body] = onlyMember(form);
  if (kind === 'int' && typeof body === 'string' && /^-?[1-9a-f][0-9a-f]*$/.test(body) && !body.endsWith('\n')) {
    return body.startsWith('-') ? -BigInt(`0x${body.slice(1)}`) : BigInt(`0x${body}`);
  }
  if (kind === 'str') return fromPoints(body);
  if (kind === 'pairs' && Array.isArray(body)) {
    const pairs = body.map(pair).map(([key, value]) => [mapKey(typeof key === 'string' ? key : onlyString(key)), ours(value)]);
    const result = new Map(pairs);
    if (result.size === pairs.length) return result;
  }
  throw damaged('an unknown form');
}

export function depth(value) {
  let level = [value];
  let count = 0;
  for (;;) {
    level = level.filter((each) => Array.isArray(each) || each instanceof Map);
    if (level.length === 0) return count;
    count += 1;
    level = level.flatMap((each) => [...each.values()]);
  }
}

/** The form that a twin has for a value. */
export function tagged(value) {
  if (value === null || typeof value === 'boolean' || typeof value === 'string') return value;
  if (typeof value === 'bigint') return { int: `${value}` };
  if (typeof value === 'number') return { float: floatForm(value) };
  if (value instanceof Points) return { str: value.points };
  if (Array.isArray(value)) return { list: value.map(tagged) };
  return { dict: [...value].map(([key, each]) => [keyForm(key), tagged(each)]) };
}

function floatForm(value) {
  if (Number.isNaN(value)) return 'nan';
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf';
  const bytes = new DataView(new ArrayBuffer(8));
  bytes.setFloat64(0, value);
  return bytes.getBigUint64(0).toString(16).padStart(16, '0');
}

function keyForm(key) {
  if (!key.startsWith('\0')) return key;
  return key.startsWith('\0\0') ? key.slice(1) : { str: key.slice(1).split(',').map(Number) };
}
