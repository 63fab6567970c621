// Strict JSON. An integer becomes a BigInt, any other number a Number, an object a Dict.
import { Dict } from './dict.mjs';
import { damaged } from './refusal.mjs';

// Keeps the parser's own stack from running out. Nothing but members that nobody knows needs more than 257; the limit
// of an exact value is checked where its patches are in place.
const DEEPEST = 1000;

// With more digits than these have, there is no need to work out the number.
const SMALLEST = -(2n ** 63n);
const LARGEST = 2n ** 64n - 1n;
const MOST_DIGITS = 20;

const SPACE = /[ \t\r\n]*/y;
const NUMBER = /(-?(?:0|[1-9][0-9]*))(\.[0-9]+)?([eE][+-]?[0-9]+)?/y;
const PLAIN = /[^"\\\u0000-\u001f]*/y;
const ESCAPE = /\\(?:(["\\/bfnrt])|u([0-9a-fA-F]{4}))/y;
const ESCAPED = { '"': '"', '\\': '\\', '/': '/', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' };
const WORDS = [['null', null], ['true', true], ['false', false]];

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

// The text of bytes that have to be UTF-8. A byte order mark stays, for the parser to refuse.
export function decode(bytes) {
  try {
    return utf8.decode(bytes);
  } catch (error) {
    // Node holds no string beyond 512 MiB, which is no fault of the file.
    throw error.code === 'ERR_ENCODING_INVALID_ENCODED_DATA' ? damaged('not UTF-8') : error;
  }
}

// The value that is all of the text.
export function parse(text) {
  const { value, end } = parseAt(text, 0);
  if (end !== text.length) throw damaged(`JSON: more text at ${end}`);
  return value;
}

// The value that begins at a place in the text, and where it and the white space after it end.
export function parseAt(text, start) {
  const parser = new Parser(text, start);
  const value = parser.value(0);
  return { value, end: parser.at };
}

class Parser {
  constructor(text, at) {
    this.text = text;
    this.at = at;
  }

  value(depth) {
    this.space();
    const value = this.bare(depth);
    this.space();
    return value;
  }

  bare(depth) {
    const first = this.text[this.at];
    if (first === '"') return this.string();
    if (first === '{' || first === '[') {
      if (depth === DEEPEST) throw this.error('nested too deep');
      return first === '{' ? this.object(depth + 1) : this.array(depth + 1);
    }
    for (const [word, value] of WORDS) {
      if (this.text.startsWith(word, this.at)) {
        this.at += word.length;
        return value;
      }
    }
    return this.number();
  }

  object(depth) {
    const object = new Dict();
    this.at += 1;
    this.space();
    if (this.skip('}')) return object;
    do {
      this.space();
      const key = this.string();
      if (object.has(key)) throw this.error('a name twice in an object');
      this.space();
      this.need(':');
      object.set(key, this.value(depth));
    } while (this.skip(','));
    this.need('}');
    return object;
  }

  array(depth) {
    const array = [];
    this.at += 1;
    this.space();
    if (this.skip(']')) return array;
    do {
      array.push(this.value(depth));
    } while (this.skip(','));
    this.need(']');
    return array;
  }

  string() {
    this.need('"');
    let string = this.match(PLAIN)[0];
    while (!this.skip('"')) {
      const escape = this.match(ESCAPE);
      if (escape === null) throw this.error('no such string');
      string += escape[1] ? ESCAPED[escape[1]] : String.fromCharCode(parseInt(escape[2], 16));
      string += this.match(PLAIN)[0];
    }
    // UTF-8 holds no surrogates, so one that stands alone came from an escape.
    if (!string.isWellFormed()) throw this.error('a surrogate in a string');
    return string;
  }

  number() {
    const match = this.match(NUMBER);
    if (match === null) throw this.error('no value');
    const [all, integer, fraction, exponent] = match;
    if (fraction === undefined && exponent === undefined) return this.integer(integer);
    const number = Number(all);
    if (!Number.isFinite(number)) throw this.error('a number that no double holds');
    return number;
  }

  integer(digits) {
    const integer = digits.length > MOST_DIGITS ? LARGEST + 1n : BigInt(digits);
    if (integer < SMALLEST || integer > LARGEST) throw this.error('an integer beyond 64 bits');
    return integer;
  }

  space() {
    this.match(SPACE);
  }

  match(pattern) {
    pattern.lastIndex = this.at;
    const match = pattern.exec(this.text);
    if (match !== null) this.at = pattern.lastIndex;
    return match;
  }

  skip(character) {
    if (this.text[this.at] !== character) return false;
    this.at += 1;
    return true;
  }

  need(character) {
    if (!this.skip(character)) throw this.error(`no ${character}`);
  }

  error(message) {
    return damaged(`JSON: ${message} at ${this.at}`);
  }
}
