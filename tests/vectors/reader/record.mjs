import { decode, parse, parseAt } from './json.mjs';
import { isArrayOf, isBoundary, isCaptureKey, isInteger, isString } from './member.mjs';
import { patched } from './patch.mjs';
import { damaged } from './refusal.mjs';

const LF = 0x0a;

// The record of one line, its line feed included.
export function recordOf(line) {
  if (line.indexOf(LF) !== line.length - 1) throw damaged('a record is not one line');
  const scan = new Scan(decode(line));
  const episode = scan.member('{"episode":', isCaptureKey);
  const boundary = scan.member(',"boundary":', isBoundary);
  const schema = scan.member(',"schema":', isInteger);
  const references = scan.optional(',"references":', isReferences) ?? [];
  // Written again, the members so far have to give the same bytes, as there is only one way to write them.
  const canonical = `{"episode":${JSON.stringify(episode)},"boundary":${boundary},"schema":${schema}`
    + (references.length > 0 ? `,"references":${JSON.stringify(references)}` : '');
  if (scan.done() !== canonical) throw damaged('the members of a record are not canonical');
  const patches = scan.optional(',"patches":', isPatches) ?? [];
  const payload = parse(scan.payload());
  return { episode, boundary, schema, references, payload: patched(payload, patches) };
}

const isReferences = (value) => isArrayOf(isString)(value) && value.length > 0;
export const isPatches = (value) => Array.isArray(value) && value.length > 0;

class Scan {
  constructor(text) {
    this.text = text;
    this.at = 0;
  }

  // No white space stands around the value, though there may be some within it.
  member(before, test) {
    if (!this.text.startsWith(before, this.at)) throw damaged(`a record without ${before}`);
    const start = this.at + before.length;
    const { value, end } = parseAt(this.text, start);
    if (/\s/.test(this.text[start] + this.text[end - 1])) throw damaged(`a record with white space after ${before}`);
    if (!test(value)) throw damaged(`a record with another value after ${before}`);
    this.at = end;
    return value;
  }

  optional(before, test) {
    return this.text.startsWith(before, this.at) ? this.member(before, test) : undefined;
  }

  done() {
    return this.text.slice(0, this.at);
  }

  // All that is left, without the brace that ends the record.
  payload() {
    const before = ',"payload":';
    if (!this.text.startsWith(before, this.at)) throw damaged('a record without payload');
    if (!this.text.endsWith('}\n')) throw damaged('a record without end');
    return this.text.slice(this.at + before.length, -2);
  }
}
