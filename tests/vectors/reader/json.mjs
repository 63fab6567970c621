// Strict JSON, exactly: an integer is a BigInt, a double a number, an object a Map in order.

export class Refused extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

export const damaged = (message) => new Refused('damaged', message);

const NUMBER = /-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/y;
const PLAIN = /[^"\\\u0000-\u001f]*/y;
const ESCAPES = { '"': '"', '\\': '\\', '/': '/', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' };
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

export function text(bytes) {
  try {
    return decoder.decode(bytes);
  } catch {
    throw damaged('not UTF-8');
  }
}

/** The value of a JSON text with at most `depth` containers one in the other. */
export function parse(bytes, depth) {
  const parser = new Parser(text(bytes), depth);
  parser.spaces();
  const value = parser.value(0);
  parser.spaces();
  if (parser.at !== parser.text.length) throw damaged('text after the JSON value');
  return value;
}

class Parser {
  constructor(source, depth) {
    this.text = source;
    this.depth = depth;
    this.at = 0;
  }

  spaces() {
    while (' \t\r\n'.includes(this.text[this.at] ?? 'x')) this.at += 1;
  }

  take(literal) {
    if (!this.text.startsWith(literal, this.at)) throw damaged(`no ${literal} at ${this.at}`);
    this.at += literal.length;
  }

  match(pattern) {
    pattern.lastIndex = this.at;
    const match = pattern.exec(this.text);
    if (match === null) throw damaged(`no JSON at ${this.at}`);
    this.at = pattern.lastIndex;
    return match;
  }

  value(outside) {
    switch (this.text[this.at]) {
      case '{': return this.object(outside + 1);
      case '[': return this.array(outside + 1);
      case '"': return this.string();
      case 't': this.take('true'); return true;
      case 'f': this.take('false'); return false;
      case 'n': this.take('null'); return null;
      default: return this.number();
    }
  }

  number() {
    const [spelled, fraction, exponent] = this.match(NUMBER);
    if (fraction === undefined && exponent === undefined) {
      const integer = BigInt(spelled);
      if (integer < -(2n ** 63n) || integer >= 2n ** 64n) throw damaged('an integer out of range');
      return integer;
    }
    const double = Number(spelled);
    if (!Number.isFinite(double)) throw damaged('a number beyond a double');
    return double;
  }

  string() {
    this.take('"');
    let result = '';
    for (;;) {
      result += this.match(PLAIN)[0];
      if (this.text[this.at] === '"') break;
      this.take('\\');
      const letter = this.text[this.at];
      this.at += 1;
      if (letter === 'u') result += String.fromCharCode(parseInt(this.match(/[0-9a-fA-F]{4}/y)[0], 16));
      else if (Object.hasOwn(ESCAPES, letter ?? '')) result += ESCAPES[letter];
      else throw damaged('an unknown escape');
    }
    this.at += 1;
    if (/[\ud800-\udfff]/u.test(result)) throw damaged('a surrogate');
    return result;
  }

  /** What stands between brackets, one element at a time. */
  elements(close, depth, element) {
    if (depth > this.depth) throw damaged('nested too deep');
    this.at += 1;
    this.spaces();
    if (this.text[this.at] !== close) {
      for (;;) {
        element();
        this.spaces();
        if (this.text[this.at] === close) break;
        this.take(',');
        this.spaces();
      }
    }
    this.at += 1;
  }

  array(depth) {
    const result = [];
    this.elements(']', depth, () => result.push(this.value(depth)));
    return result;
  }

  object(depth) {
    const result = new Map();
    this.elements('}', depth, () => {
      const name = this.string();
      if (result.has(name)) throw damaged('a member twice');
      this.spaces();
      this.take(':');
      this.spaces();
      result.set(name, this.value(depth));
    });
    return result;
  }
}

/** Members of an object that nobody has checked yet: each must be of exactly its type. */
export class Fields {
  constructor(value) {
    if (!(value instanceof Map)) throw damaged('no object');
    this.members = value;
  }

  has(name) {
    return this.members.has(name);
  }

  any(name) {
    if (!this.members.has(name)) throw damaged(`no member ${name}`);
    return this.members.get(name);
  }

  string(name, pattern = /^/) {
    const value = this.any(name);
    if (typeof value !== 'string' || !pattern.test(value)) throw damaged(`${name} is none`);
    return value;
  }

  label(name) {
    const value = this.string(name);
    const length = [...value].length;
    if (length < 1 || length > 256 || /\p{Cc}/u.test(value)) throw damaged(`${name} is no label`);
    return value;
  }

  integer(name, low = 0n, high = 2n ** 63n - 1n) {
    const value = this.any(name);
    if (typeof value !== 'bigint' || value < low || value > high) throw damaged(`${name} is out of range`);
    return value;
  }

  array(name, check = () => true) {
    const value = this.any(name);
    if (!Array.isArray(value) || !value.every(check)) throw damaged(`${name} is no such array`);
    return value;
  }

  integers(name, low = 0n, high = 2n ** 63n - 1n) {
    return this.array(name, (each) => typeof each === 'bigint' && each >= low && each <= high);
  }

  strings(name) {
    return this.array(name, (each) => typeof each === 'string');
  }

  object(name) {
    return new Fields(this.any(name));
  }
}
